"""Shared by all searches of `oclab tune`: their options, and running them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import click

from opencl_lab.core import early
from opencl_lab.core.device import Device
from opencl_lab.lab.cli.common import (
    add_options,
    output_path,
    print_json,
    settings,
    write_files,
)
from opencl_lab.lab.cli.completion import files
from opencl_lab.lab.cli.tune_progress import watch
from opencl_lab.lab.cli.tune_result import print_result, result_document
from opencl_lab.lab.presentation.drawing import check_plot
from opencl_lab.lab.tuning.plots import plot_tuning
from opencl_lab.lab.tuning.result import TuneResult
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, STRATEGIES
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import DEFAULT_TIME_LIMIT, SearchOptions, run_tuning

SEARCH_OPTIONS = (
    click.option(
        "--strategy",
        type=click.Choice(list(STRATEGIES)),
        default=DEFAULT_STRATEGY,
        show_default=True,
        help="Search strategy.",
    ),
    click.option(
        "--budget", type=int, metavar="N", help="Largest number of configurations to try."
    ),
    click.option(
        "--time-limit",
        type=float,
        metavar="S",
        help="Time limit of the search in seconds.  "
        f"[default: {DEFAULT_TIME_LIMIT:g} without a budget]",
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="S",
        help="Timeout in seconds for the build and for the runs of a configuration, at most a "
        "third of --time-limit.  [default: by the best so far]",
    ),
    click.option(
        "--builders",
        type=click.IntRange(0),
        metavar="N",
        help="Number of processes that compile ahead.  [default: by the number of cores]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        show_default=True,
        help="Seed of data and search.",
    ),
    click.option("--fresh", is_flag=True, help="Start a new search, without earlier results."),
    click.option(
        "--plot",
        "plot_file",
        metavar="FILE",
        shell_complete=files,
        help="Write a plot of the search.",
    ),
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
    with watch(task) as progress:
        result = run_tuning(task, search, progress)
    if result.journal is None:
        early.command.kept = "what was found could not be kept: see the notes"
    failed = 0
    try:
        if settings().json:
            print_json(result_document(result, selection))
        else:
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
