"""`oclab tune OPERATION`: find the fastest configuration, with live progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from opencl_lab.core.device import Device
from opencl_lab.lab.cli.common import global_options, option
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.options import given_of, problem_options
from opencl_lab.lab.cli.tune_search import AskedSearch, run_search, search_options
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import make_task


class _Tunable(LazyGroup):
    """The operations, and kernels in files, by their paths."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command for an operation or a file."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name.endswith((".cl", ".mako")):
            from opencl_lab.lab.cli.tune_kernel import tune_kernel_command

            command = tune_kernel_command(cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of an operation or of a file."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, say which files are kernels."""
        name = args[0]
        if Path(name).suffix and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"{name!r} is neither an operation nor a kernel file (.cl or .mako)")
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage after the name of the command."""
        return ["[OPTIONS]", "OPERATION|KERNEL.cl.mako|KERNEL.cl", "[ARGS]..."]


@click.group("tune", cls=_Tunable, operation_place="opencl_lab.lab.cli.tune:tune_operation_command")
@global_options
def tune_command() -> None:
    """Find the fastest configuration of an operation or of your own kernel, and store it.

    Configurations run in a worker process, and are checked before they are
    timed. The same command resumes where an earlier one stopped.

    Name your own kernel by its file; see `oclab tune my.cl.mako --help`.
    """


def tune_operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that tunes one operation."""
    names = ", ".join(algorithm.name for algorithm in chosen.algorithms)

    @click.command(chosen.name, help=f"Tune {chosen.name}.\n\nAlgorithms: {names}")
    @problem_options(chosen)
    @option("--algorithm NAME|auto", "Algorithm to tune.", default="auto")
    @search_options
    @global_options
    def command(algorithm: str, **given: Any) -> int:
        search = AskedSearch.taken_from(given)

        def make(device: Device) -> TuningTask:
            problem = given_of(given)
            return make_task(
                chosen, algorithm=algorithm, device=device, seed=search.seed, **problem
            )

        return run_search(make, search)

    return command
