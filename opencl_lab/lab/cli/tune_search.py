"""Shared by all searches of `oclab tune`: their options, running them, and their progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import click
from rich.live import Live
from rich.text import Text

from opencl_lab.core import early
from opencl_lab.core.device import Device
from opencl_lab.core.interrupt import released
from opencl_lab.lab.cli.common import (
    add_options,
    option,
    output_path,
    print_json,
    settings,
    write_files,
)
from opencl_lab.lab.cli.options import compile_option
from opencl_lab.lab.cli.tune_result import failure_counts, pace, print_result, result_document
from opencl_lab.lab.measuring.roofline import share_text
from opencl_lab.lab.presentation.drawing import check_plot
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.tuning.plots import plot_tuning
from opencl_lab.lab.tuning.result import TuneResult, TuningProgress, share_of_peak
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, STRATEGIES
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import DEFAULT_TIME_LIMIT, SearchOptions, run_tuning

LINE_SECONDS = 10.0
"""Seconds between lines of progress without an improvement."""

SEARCH_OPTIONS = (
    option(
        "--strategy",
        "Search strategy.",
        type=click.Choice(list(STRATEGIES)),
        default=DEFAULT_STRATEGY,
    ),
    option("--budget N", "Largest number of configurations to try.", type=int),
    option(
        "--time-limit S",
        f"Time limit of the search in seconds.  [default: {DEFAULT_TIME_LIMIT:g} without a budget]",
        type=float,
    ),
    option(
        "--timeout S",
        "Timeout in seconds for the build and for the runs of a configuration, at most a "
        "third of --time-limit.  [default: by the best so far]",
        type=float,
    ),
    option(
        "--builders N",
        "Number of processes that compile ahead.  [default: by the number of cores]",
        type=click.IntRange(0),
    ),
    option("--seed N", "Seed of data and search.", type=click.IntRange(0), default=0),
    compile_option("Leave out configurations whose kernels spill registers on this GPU"),
    option("--fresh", "Start a new search, without earlier results.", is_flag=True),
    option("--plot FILE", "Write a plot of the search.", to="plot_file", type=click.Path()),
)


@dataclass(frozen=True)
class AskedSearch(SearchOptions):
    """The values of the options of `search_options`."""

    seed: int = 0
    plot_file: str | None = None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> AskedSearch:
        """Return these options of a command, and remove them from `given`."""
        return cls(**{field.name: given.pop(field.name) for field in fields(cls)})


def search_options(command: Any) -> Any:
    """Add the options of a search; `AskedSearch` takes them."""
    return add_options(command, SEARCH_OPTIONS)


def run_search(make: Callable[[Device], TuningTask], search: AskedSearch) -> int:
    """Tune the task that `make` returns, print the result, and return the exit status."""
    plot_path = output_path(search.plot_file, check_plot)
    selection = settings().begin()
    task = make(selection.device)
    selection = replace(selection, device=task.device)  # perhaps its serial side
    settings().say_device()
    settings().say(f"{_title(task)}")
    early.command.kept = "what was found is kept, the same command resumes from here"
    with _watch(task) as progress:
        result = run_tuning(task, search, progress)
    if result.journal is None:
        early.command.kept = "what was found could not be kept: see the notes"
    failed = 0
    try:
        print_json(lambda: result_document(result, selection))
        print_result(result)
    finally:  # even if the output cannot be printed
        if plot_path is not None and result.evaluations:
            title = f"{_title(task)}\n{selection.device}"
            failed = write_files(lambda: plot_tuning(plot_path, result, title))
    return failed or _status(result)


def _status(result: TuneResult) -> int:
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    if result.best is not None:
        return 0
    return 4 if set(result.failures) - {"correctness", "constraints"} else 1


def _title(task: TuningTask) -> str:
    where = ", in the calling thread" if task.device.is_serial else ""
    return f"{task.operation.name} by {task.algorithm_name}: {task.problem.title}{where}"


# ------------------------------------------------------------------ progress


@contextmanager
def _watch(task: TuningTask) -> Iterator[Callable[[TuningProgress], None] | None]:
    """Yield what shows progress: on a terminal the state in place, else a line now and then."""
    if settings().quiet or settings().json:
        yield None
        return
    if not sys.stdout.isatty():
        yield _ProgressLines(task)
        return
    live = Live("starting", console=settings().console, transient=True)
    with released(live.start, lambda _: live.stop()):

        def show(state: TuningProgress) -> None:
            # A short search ends before the first automatic refresh.
            live.update(Text("\n".join((_line(task, state), *state.notes))), refresh=True)

        yield show


class _ProgressLines:
    """Progress as lines: one for each improvement, and others at intervals."""

    def __init__(self, task: TuningTask):
        self._task = task
        self._shown: Any = None
        self._last = 0.0
        self._notes = 0

    def __call__(self, state: TuningProgress) -> None:
        for note in state.notes[self._notes :]:
            settings().say(f"note: {note}")
        self._notes = len(state.notes)
        now = time.monotonic()
        what = (state.phase, state.best and state.best.config)
        if what != self._shown or now >= self._last + LINE_SECONDS:
            self._shown, self._last = what, now
            settings().say(_line(self._task, state))


def _line(task: TuningTask, state: TuningProgress) -> str:
    """Return the progress in one line."""
    parts = (
        f"{state.phase} {state.evaluated}" + (f"/{state.total}" if state.total else " tried"),
        _best_text(task, state),
        failure_counts(state.failures),
        pace(state),
        "" if state.seconds_left is None else f"{state.seconds_left:.0f} s left",
    )
    return "; ".join(part for part in parts if part)


def _best_text(task: TuningTask, state: TuningProgress) -> str:
    if state.best is None:
        return "nothing correct yet"
    share, why = share_of_peak(task, state.best.time_ms)
    about = f", {why}" if why else ""
    peak = "" if share is None else f" ({share_text(share)} % of peak{about})"
    # After the finals the winner is printed in full.
    config = f" {state.best.config}" if state.phase == "search" else ""
    return f"best {number(state.best.time_ms)} ms{peak}{config}"
