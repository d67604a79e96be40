"""`oclab bench`: sweeps over sizes, and comparisons of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opencl_lab.core.wording import counted
from opencl_lab.lab.cli.common import (
    complain,
    document,
    global_options,
    option,
    print_json,
    settings,
)
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.values import no_nan
from opencl_lab.lab.engine.stored import Results, read_results
from opencl_lab.lab.presentation.changes import (
    THRESHOLD,
    Changes,
    changes_table,
    compare_results,
    counted_verdicts,
)

IN_A_FOLDER = "results.json"  # the document of `oclab bench` in a folder
OPTIONAL = ("runs", "kernel ratio", "old min..max", "new min..max")


@click.group(
    "bench",
    cls=LazyGroup,
    operation_place="opencl_lab.lab.cli.sweep:sweep_command",
    invoke_without_command=True,
    no_args_is_help=True,
)
@option(
    "--compare OLD NEW",
    "Compare two runs row by row: JSON documents, or folders of `oclab bench`. Exit status 1 "
    "if an OpenCL row became slower beyond noise and the threshold, fails now, or is missing "
    "although the new run has measured the same problem.",
    nargs=2,
)
@option(
    "--threshold X",
    "With --compare: the ratio of medians above which a slower row is a regression.  "
    f"[default: {THRESHOLD:.2f}]",
    type=click.FloatRange(1.0, 1e6),
    callback=no_nan,
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
        raise click.UsageError("--compare takes two existing runs, and no operation")
    if compare is not None:
        old, new = map(Path, compare)
        return compare_runs(old, new, THRESHOLD if threshold is None else threshold)
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.")
    return None


def compare_runs(old: Path, new: Path, threshold: float) -> int:
    """Print how the rows of two documents differ; return 1 if one is a regression, else 0."""
    before, after = (
        read_results(path / IN_A_FOLDER if path.is_dir() else path) for path in (old, new)
    )
    changes = compare_results(before, after)
    worse = [row for row in changes.rows if row.regressed(threshold)]
    status = 1 if changes.regressed(threshold) else 0
    if settings().json:
        print_json(lambda: _document(before, after, changes, threshold))
        return status
    for warning in changes.warnings:
        complain(warning)
    title = f"{after.operation}: {before.path} (old), {after.path} (new)"
    rows = [{**x.as_dict(threshold), "implementation": x.new.label} for x in changes.rows]
    settings().show(changes_table(rows).table(title), OPTIONAL)
    for where, alone in ((before.path, changes.only_old), (after.path, changes.only_new)):
        for name in changes.in_short(alone):
            settings().say(f"only in {where}: {name}")
    verdicts = counted_verdicts(row.verdict for row in changes.rows)
    settings().say(f"{counted(len(changes.rows), 'row')}: {verdicts}")
    settings().say(
        f"{counted(len(worse), 'regression')}: OpenCL rows that fail now or take more than "
        f"{threshold:g} times as long, beyond noise"
    )
    _say_missing(changes)
    return status


def _say_missing(changes: Changes) -> None:
    """Print which OpenCL rows have no counterpart, and whether that is a regression."""
    if changes.missing:
        missing = counted(len(changes.missing), "row")
        settings().say(
            f"{missing} of OpenCL missing in the new run, which has measured the same problem"
        )
    alone = (*changes.only_old, *changes.only_new)
    others = sum(row.measurement.kind == "opencl" for row in alone) - len(changes.missing)
    if others:
        settings().say(
            f"{counted(others, 'row')} of OpenCL for problems or algorithms of one run only"
        )


def _document(old: Results, new: Results, changes: Changes, threshold: float) -> dict[str, Any]:
    runs = {
        name: {"path": str(run.path), "version": run.version, "device": dict(run.device)}
        for name, run in (("old", old), ("new", new))
    }
    return document(
        "bench",
        compared=runs,
        threshold=threshold,
        warnings=changes.warnings,
        results=[row.as_dict(threshold) for row in changes.rows],
        only_old=[*map(str, changes.only_old)],
        only_new=[*map(str, changes.only_new)],
        missing=[*map(str, changes.missing)],
        regressions=sum(row.regressed(threshold) for row in changes.rows),
    )
