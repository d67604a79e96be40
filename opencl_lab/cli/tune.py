"""`oclab tune OPERATION`: find the fastest configuration, watched live."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from opencl_lab.cli.common import (
    document,
    global_options,
    output_path,
    print_json,
    settings,
    write_files,
)
from opencl_lab.cli.lazy import LazyGroup
from opencl_lab.cli.operation import problem_options
from opencl_lab.comparison.plots import check_plot
from opencl_lab.comparison.table import number, peak_caption
from opencl_lab.device import Selection
from opencl_lab.doctor.peaks import share_text, stored_peaks
from opencl_lab.interrupt import interrupt_at_termination
from opencl_lab.operation import Operation
from opencl_lab.registry import operations
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.plots import plot_tuning
from opencl_lab.tuning.result import Progress as State
from opencl_lab.tuning.result import TuneResult, share_of_peak
from opencl_lab.tuning.strategies import STRATEGIES
from opencl_lab.tuning.task import Task
from opencl_lab.tuning.tuner import DEFAULT_TIME_LIMIT, check_limits, make_task, run_tuning
from opencl_lab.wording import counted

__all__ = ["SEARCH", "run_search", "search_options", "tune_command", "tune_operation_command"]

INTERRUPTED = 130
LINE_INTERVAL = 10.0  # seconds between plain lines when nothing better was found
OPTIONAL_COLUMNS = ("% peak", "runs", "GFLOP/s", "GB/s", "min..max")
"""What a narrow terminal does without, in this order."""
REASONS = 5  # of failures and of what was removed, before -v asks for all
SEARCH_OPTIONS = (
    click.option(
        "--strategy",
        type=click.Choice(list(STRATEGIES)),
        default="local-search",
        show_default=True,
        help="How to search.",
    ),
    click.option("--budget", type=int, metavar="N", help="Evaluations at most."),
    click.option(
        "--time-limit",
        type=float,
        metavar="S",
        help=f"Seconds at most.  [default: {DEFAULT_TIME_LIMIT:g} without a budget]",
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="S",
        help="Seconds for a configuration to build, and to run.  [default: by the best so far]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of data and search.",
    ),
    click.option("--fresh", is_flag=True, help="Forget what earlier runs have found."),
    click.option("--plot", "plot_file", metavar="FILE", help="Draw the search."),
)
SEARCH = ("strategy", "budget", "time_limit", "timeout", "seed", "fresh", "plot_file")


class _Tunable(LazyGroup):
    """The operations, and any kernel in a file by its path."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command for an operation or a file."""
        known = super().get_command(ctx, cmd_name)
        if known is None and cmd_name.endswith((".cl", ".mako")):
            from opencl_lab.cli.tune_kernel import tune_kernel_command

            known = tune_kernel_command(cmd_name)
        return known

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a file that is none of a kernel is told so."""
        name = args[0]
        if Path(name).suffix and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"{name!r} is no operation, and the files of kernels end in .cl or .mako")
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the name of the command in its usage."""
        return ["[OPTIONS]", "OPERATION|KERNEL.cl.mako|KERNEL.cl", "[ARGS]..."]


@click.group("tune", cls=_Tunable, operation_home="opencl_lab.cli.tune:tune_operation_command")
@global_options
def tune_command() -> None:
    """Find the fastest configuration of an operation, or a kernel of your own, and keep it.

    Each configuration runs in a process of its own and is checked before it is
    timed. The same command goes on where an earlier one stopped.

    A kernel of your own is named by its file; `oclab tune my.cl.mako --help` says more.
    """


def tune_operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that tunes one operation."""
    names = ", ".join(algorithm.name for algorithm in chosen.algorithms)

    @click.command(chosen.name, help=f"Tune {chosen.name}.\n\nAlgorithms: {names}")
    @problem_options(chosen)
    @click.option(
        "--algorithm", default="auto", show_default=True, metavar="NAME|auto", help="What to tune."
    )
    @search_options
    @global_options
    def command(algorithm: str, **given: Any) -> int:
        search = {name: given.pop(name) for name in SEARCH}

        def make(selection: Selection, seed: int) -> Task:
            problem = {name: value for name, value in given.items() if value is not None}
            device = selection.device
            return make_task(chosen, algorithm=algorithm, device=device, seed=seed, **problem)

        return run_search(make, search)

    return command


def search_options(command: Any) -> Any:
    """Add the options about the search; `run_search` takes what they give."""
    for option in reversed(SEARCH_OPTIONS):
        command = option(command)
    return command


def run_search(make: Callable[[Selection, int], Task], given: dict[str, Any]) -> int:
    """Tune and print what was found; return the exit status.

    Parameters
    ----------
    make : callable
        ``make(selection, seed)`` returns what is tuned.
    given : dict
        What the options of `search_options` gave.
    """
    check_limits(**{name: given[name] for name in ("budget", "time_limit", "timeout")})
    plot_path = output_path(given["plot_file"], check_plot)
    selection = settings().select()
    task = make(selection, given["seed"])
    settings().say(f"device: {selection.device}: {selection.reason}")
    settings().say(f"{_title(task)}")
    with interrupt_at_termination(), _watch(task) as progress:
        result = run_tuning(
            task,
            strategy=given["strategy"],
            budget=given["budget"],
            time_limit=given["time_limit"],
            timeout=given["timeout"],
            fresh=given["fresh"],
            progress=progress,
        )
    if result.stopped == "interrupted":  # the rest takes an instant
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    failed = 0
    try:
        if settings().json:
            print_json(_document(result, selection))
        else:
            _print(result)
    finally:  # also where nobody reads what is printed
        if plot_path is not None and result.evaluations:
            title = f"{_title(task)}\n{selection.device}"
            failed = write_files(lambda: plot_tuning(plot_path, result, title))
    return failed or _status(result)


def _status(result: TuneResult) -> int:
    if result.stopped == "interrupted":
        kept = "what was found is kept, the same command goes on from here"
        lost = "what was found could not be kept: see the notes"
        click.echo(f"oclab: interrupted; {lost if result.journal is None else kept}", err=True)
        return INTERRUPTED
    if result.best is not None:
        return 0
    return 4 if set(result.failures) - {"correctness", "constraints"} else 1


def _title(task: Task) -> str:
    return f"{task.operation.name} by {task.algorithm_name}: {task.problem.title}"


# --------------------------------------------------------------------- live


def _best_text(task: Task, best: Evaluation | None) -> str:
    if best is None:
        return "nothing correct yet"
    share, why = share_of_peak(task, best.time_ms)
    about = f", {why}" if why else ""
    peak = "" if share is None else f" ({share_text(share)} % of peak{about})"
    return f"best {number(best.time_ms)} ms{peak} {best.config}"


def _counts(failures: Mapping[str, int]) -> str:
    if not failures:
        return ""
    return "failed: " + ", ".join(f"{count} {status}" for status, count in failures.items())


def _tried(state: State) -> str:
    return f"{state.evaluated}" + (" tried" if state.total is None else f"/{state.total}")


class _Lines:
    """Progress as plain lines: each improvement, else one now and then."""

    def __init__(self, task: Task):
        self._task = task
        self._shown: Any = None
        self._last = 0.0
        self._notes = 0

    def __call__(self, state: State) -> None:
        for note in state.notes[self._notes :]:
            settings().say(f"note: {note}")
        self._notes = len(state.notes)
        now = time.monotonic()
        what = (state.phase, state.best and state.best.config)
        if what == self._shown and now < self._last + LINE_INTERVAL:
            return
        self._shown, self._last = what, now
        left = "" if state.seconds_left is None else f"{state.seconds_left:.0f} s left"
        parts = (
            f"{state.phase} {_tried(state)}",
            _best_text(self._task, state.best),
            _counts(state.failures),
            left,
        )
        settings().say("; ".join(part for part in parts if part))


class _Bar:
    """Progress as a bar, with the best so far below it."""

    def __init__(self, task: Task):
        self._task = task
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[tried]}")
        )
        self._row = self._bar.add_task("starting", total=None, tried="")
        self._state: State | None = None
        self._told = time.monotonic()

    def __call__(self, state: State) -> None:
        self._state, self._told = state, time.monotonic()

    def __rich__(self) -> Group:
        state = self._state
        if state is None:
            return Group(self._bar)
        tried = _tried(state)
        elapsed = time.monotonic() - self._told
        shares = [0.0] if state.total is None else [state.evaluated / state.total]
        if state.seconds_left is not None:
            left = max(0.0, state.seconds_left - elapsed)
            tried += f", {left:.0f} s left"
            shares.append(1 - left / max(state.time_limit or 0.0, left, 1e-9))
        known = state.total is not None or state.seconds_left is not None
        self._bar.update(
            self._row,
            description=state.phase,
            tried=tried,
            completed=max(shares),
            total=1.0 if known else None,
        )
        lines = (_best_text(self._task, state.best), _counts(state.failures), *state.notes)
        return Group(self._bar, *(Text(line) for line in lines if line))


@contextmanager
def _watch(task: Task) -> Iterator[Any]:
    """Yield what shows progress: a live bar on a terminal, else plain lines."""
    if settings().quiet or settings().json:
        yield None
    elif not sys.stdout.isatty():
        yield _Lines(task)
    else:
        bar = _Bar(task)
        with Live(bar, console=settings().console, refresh_per_second=4, transient=True):
            yield bar


# ------------------------------------------------------------------- result


def _document(result: TuneResult, selection: Selection) -> dict[str, Any]:
    rows = [] if result.best is None else [result.as_row(result.best)]
    default = None if result.default is None else result.as_row(result.default)
    return document(
        "tune",
        device={**result.device.as_dict(), "reason": selection.reason},
        problem={"operation": result.task.operation.name, **result.problem.as_dict()},
        algorithm=result.task.algorithm_name,
        results=rows,
        default=default,
        speedup_over_default=result.speedup,
        finalists=[result.as_row(item) for item in result.finalists],
        stable=result.stable,
        stopped=result.stopped,
        seconds=result.seconds,
        resumed=result.resumed,
        restarts=result.restarts,
        stored=result.stored,
        journal=None if result.journal is None else str(result.journal),
        notes=list(result.notes),
        removed=result.pruning.as_dict(),
        failures=result.failures,
        evaluations=[item.as_dict() for item in result.evaluations],
    )


def _print(result: TuneResult) -> None:
    say, verbose = settings().say, settings().verbose
    pruning = result.pruning
    about = "" if pruning.exact else "about "
    removed = "; removed:" if pruning.removed else ""
    total = counted(pruning.total, "combination")
    say(f"space: {total}, {about}{pruning.left} can run here{removed}")
    for index, (reason, count) in enumerate(pruning.removed.items()):
        if verbose or index < REASONS:
            say(f"  {about}{count}: {reason}")
    more = 0 if verbose else len(pruning.removed) - REASONS
    if more > 0:
        say(f"  and {counted(more, 'reason')} more, which -v shows")
    why = {
        "complete": "all that the strategy asked for",
        "budget": "the budget",
        "time": "the time limit",
        "interrupted": "an interrupt",
    }
    resumed = f", {result.resumed} of them known from before" if result.resumed else ""
    say(
        f"evaluated {counted(len(result.evaluations), 'configuration')}{resumed}, in "
        f"{result.seconds:.0f} s; ended by {why[result.stopped]}"
    )
    failed = [item for item in result.evaluations if item.status != "correct"]
    if failed:
        say(f"{_counts(result.failures)}; replacements of the worker: {result.restarts}")
        for item in failed if verbose else failed[-REASONS:]:
            say(f"  {item.status}: {item.reason} {item.config}")
    for note in result.notes:
        say(f"note: {note}")
    if result.best is None:
        say("no configuration gave a right result" if failed else "there was no time to try any")
        return
    if stored_peaks(result.device) is None:
        say("`oclab doctor` would measure the device's peaks, to compare with and to refuse beyond")
    settings().show(_table(result), OPTIONAL_COLUMNS)
    stable = "" if result.stable else ", not yet stable: more time would tell"
    default = result.task.operation.default_name
    gain = "" if result.speedup is None else f", {result.speedup:.2f}x the {default} configuration"
    if not result.gained:
        gain = f", the {default} configuration: none is measurably faster"
    say(f"winner: {result.best.config}{gain}{stable}")
    if result.stored:
        used = operations().get(result.task.operation.name) is result.task.operation
        later = "uses it from now on" if used else "begins with it the next time it is tuned"
        say(f"stored: {result.task.operation.name} {later}")


def _table(result: TuneResult) -> Table:
    finalists = result.finalists or (result.best,)
    rows = [result.as_row(item) for item in finalists if item is not None]
    rate = "gflops" if rows[0]["gflops"] else "gbps"
    peaks = rows[0]["peak_fraction"] is not None
    title = "Finals" if result.finalists else "The best so far, not measured again"
    title += ", all by kernel time"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.caption = peak_caption(row["peak_note"] for row in rows)
    names = ["kernel ms", "min..max", "runs", {"gflops": "GFLOP/s", "gbps": "GB/s"}[rate]]
    for name in (*names, *(["% peak"] if peaks else [])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("configuration")
    assert result.best is not None
    for row in rows:
        spread = row["kernel_spread_ms"]
        default = result.default is not None and row["config"] == dict(result.default.config)
        differs = {
            name: value
            for name, value in row["config"].items()
            if value != result.best.config[name]
        }
        # One long line each would not fit: the winner stands below, in full.
        shown = "the winner" if not differs else ", ".join(f"{n}={v}" for n, v in differs.items())
        table.add_row(
            number(row["kernel_ms"]),
            f"{number(spread['min'], 3)}..{number(spread['max'], 3)}",
            str(spread["runs"]),
            number(row[rate]),
            *([share_text(row["peak_fraction"])] if peaks else []),
            Text(shown + (f" ({result.task.operation.default_name})" if default else "")),
        )
    return table
