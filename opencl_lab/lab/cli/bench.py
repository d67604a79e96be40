"""`oclab bench`: sweeps over sizes, and what changed between two runs."""

from __future__ import annotations

from pathlib import Path

import click

from opencl_lab.lab.cli.changes import compare_runs
from opencl_lab.lab.cli.common import global_options
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.values import no_nan
from opencl_lab.lab.presentation.changes import THRESHOLD


@click.group(
    "bench",
    cls=LazyGroup,
    operation_home="opencl_lab.lab.cli.sweep:sweep_command",
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option(
    "--compare",
    nargs=2,
    metavar="OLD NEW",
    help="Compare two runs row by row: JSON documents, or folders of `oclab bench`. Exit status 1 "
    "if a row of OpenCL became slower beyond noise and past the threshold, fails now, or is "
    "missing where the new run has measured the same problem.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(1.0, 1e6),
    callback=no_nan,
    help="With --compare: the ratio of medians from which on slower is a regression.  "
    f"[default: {THRESHOLD:.2f}]",
)
@global_options
@click.pass_context
def bench_command(
    context: click.Context, compare: tuple[str, str] | None, threshold: float | None
) -> int | None:
    """Sweep an operation over sizes and write CSV, JSON, a table and plots."""
    if compare is None and threshold is not None:
        raise click.UsageError("--threshold is for --compare OLD NEW")
    if compare is not None and context.invoked_subcommand is not None:
        raise click.UsageError("--compare takes two runs that are there, and no operation")
    if compare is not None:
        old, new = map(Path, compare)
        return compare_runs(old, new, THRESHOLD if threshold is None else threshold)
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.")
    return None
