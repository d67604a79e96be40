"""`oclab tune OPERATION`: find the fastest configuration, watched live."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from opencl_lab.core.device import Device
from opencl_lab.lab.cli.common import (
    add_options,
    global_options,
    output_path,
    print_json,
    settings,
    write_files,
)
from opencl_lab.lab.cli.completion import algorithms, files
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.options import given_of, problem_options
from opencl_lab.lab.cli.tune_progress import watch
from opencl_lab.lab.cli.tune_result import print_result, result_document
from opencl_lab.lab.comparison.drawing import check_plot
from opencl_lab.lab.interrupt import interrupt_at_termination
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.tuning.plots import plot_tuning
from opencl_lab.lab.tuning.result import TuneResult
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, STRATEGIES
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import DEFAULT_TIME_LIMIT, check_limits, make_task, run_tuning

__all__ = [
    "SearchOptions",
    "run_search",
    "search_options",
    "tune_command",
    "tune_operation_command",
]

INTERRUPTED = 130
SEARCH_OPTIONS = (
    click.option(
        "--strategy",
        type=click.Choice(list(STRATEGIES)),
        default=DEFAULT_STRATEGY,
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
        help="Seconds for a configuration to build, and to run; a third of --time-limit at most.  "
        "[default: by the best so far]",
    ),
    click.option(
        "--builders",
        type=click.IntRange(0),
        metavar="N",
        help="Processes that compile ahead.  [default: by the number of cores]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of data and search.",
    ),
    click.option("--fresh", is_flag=True, help="Forget what earlier runs have found."),
    click.option(
        "--plot", "plot_file", metavar="FILE", shell_complete=files, help="Draw the search."
    ),
)


@dataclass(frozen=True)
class SearchOptions:
    """What the options of `search_options` gave."""

    strategy: str
    budget: int | None
    time_limit: float | None
    timeout: float | None
    builders: int | None
    seed: int
    fresh: bool
    plot_file: str | None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> SearchOptions:
        """Return these options of a command, and remove them from what was `given`."""
        return cls(**{field.name: given.pop(field.name) for field in fields(cls)})


class _Tunable(LazyGroup):
    """The operations, and any kernel in a file by its path."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command for an operation or a file."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name.endswith((".cl", ".mako")):
            from opencl_lab.lab.cli.tune_kernel import tune_kernel_command

            command = tune_kernel_command(cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of an operation, else that of a file."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; say which files are kernels where another is named."""
        name = args[0]
        if Path(name).suffix and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"{name!r} is no operation, and the files of kernels end in .cl or .mako")
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the name of the command in its usage."""
        return ["[OPTIONS]", "OPERATION|KERNEL.cl.mako|KERNEL.cl", "[ARGS]..."]


@click.group("tune", cls=_Tunable, operation_home="opencl_lab.lab.cli.tune:tune_operation_command")
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
        "--algorithm",
        default="auto",
        show_default=True,
        metavar="NAME|auto",
        help="What to tune.",
        shell_complete=algorithms,
    )
    @search_options
    @global_options
    def command(algorithm: str, **given: Any) -> int:
        search = SearchOptions.taken_from(given)

        def make(device: Device) -> TuningTask:
            problem = given_of(given)
            return make_task(
                chosen, algorithm=algorithm, device=device, seed=search.seed, **problem
            )

        return run_search(make, search)

    return command


def search_options(command: Any) -> Any:
    """Add the options about the search; `SearchOptions` takes them."""
    return add_options(command, SEARCH_OPTIONS)


def run_search(make: Callable[[Device], TuningTask], search: SearchOptions) -> int:
    """Tune and print what was found; return the exit status.

    Parameters
    ----------
    make : callable
        ``make(device)`` returns what is tuned.
    search : SearchOptions
    """
    check_limits(budget=search.budget, time_limit=search.time_limit, timeout=search.timeout)
    plot_path = output_path(search.plot_file, check_plot)
    selection = settings().begin()
    task = make(selection.device)
    settings().say_device()
    settings().say(f"{_title(task)}")
    with interrupt_at_termination(), watch(task) as progress:
        result = run_tuning(
            task,
            strategy=search.strategy,
            budget=search.budget,
            time_limit=search.time_limit,
            timeout=search.timeout,
            builders=search.builders,
            fresh=search.fresh,
            progress=progress,
        )
    if result.stopped == "interrupted":  # the rest takes an instant
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    failed = 0
    try:
        if settings().json:
            print_json(result_document(result, selection))
        else:
            print_result(result)
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


def _title(task: TuningTask) -> str:
    return f"{task.operation.name} by {task.algorithm_name}: {task.problem.title}"
