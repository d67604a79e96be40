"""`oclab bench --compare OLD NEW`: what became faster or slower between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.wording import counted
from opencl_lab.lab.cli.common import document, print_json, settings
from opencl_lab.lab.engine.stored import Results, read_results
from opencl_lab.lab.presentation.changes import Change, Changes, compare_results
from opencl_lab.lab.presentation.table import number

IN_A_FOLDER = "results.json"  # what `oclab bench` writes there
STYLES = {"faster": "green", "works now": "green", "slower": "yellow", "fails now": "red"}
OPTIONAL = ("runs", "kernel ratio", "old min..max", "new min..max")


def compare_runs(old: Path, new: Path, threshold: float) -> int:
    """Print how the rows of two documents differ; return 1 if one is a regression, else 0.

    Raises
    ------
    InvalidProblem
        If a document cannot be read, or they have no row in common.
    """
    before, after = (
        read_results(path / IN_A_FOLDER if path.is_dir() else path) for path in (old, new)
    )
    changes = compare_results(before, after)
    worse = [row for row in changes.rows if row.regressed(threshold)]
    status = 1 if changes.regressed(threshold) else 0
    if settings().json:
        print_json(_document(before, after, changes, threshold))
        return status
    for warning in changes.warnings:
        click.echo(f"oclab: {warning}", err=True)
    fixed, varied = _parts([row.what for row in changes.rows])
    title = f"{after.operation}: {before.path} (old), {after.path} (new)"
    common = ", ".join(f"{name}={value}" for name, value in fixed.items() if value is not None)
    settings().show(_table(title, common, varied, changes.rows, threshold), OPTIONAL)
    for where, names in ((before.path, changes.short_old), (after.path, changes.short_new)):
        for name in names:
            settings().say(f"only in {where}: {name}")
    counts = Counter(row.verdict for row in changes.rows)
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    settings().say(f"{counted(len(changes.rows), 'row')}: {parts}")
    settings().say(
        f"{counted(len(worse), 'regression')}: rows of OpenCL that fail now or take more than "
        f"{threshold:g} times as long, beyond noise"
    )
    _say_missing(changes)
    return status


def _say_missing(changes: Changes) -> None:
    """Say which rows of OpenCL have no counterpart, and whether that counts."""
    if changes.missing:
        missing = counted(len(changes.missing), "row")
        settings().say(
            f"{missing} of OpenCL missing in the new run, which has measured the same problem"
        )
    others = sum("opencl:" in name for name in (*changes.only_old, *changes.only_new))
    others -= len(changes.missing)
    if others:
        settings().say(
            f"{counted(others, 'row')} of OpenCL of problems or algorithms that only one run has"
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
        only_old=changes.only_old,
        only_new=changes.only_new,
        missing=changes.missing,
        regressions=sum(row.regressed(threshold) for row in changes.rows),
    )


def _parts(problems: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return what all problems have in common, and the names of the rest."""
    first = problems[0]
    names = dict.fromkeys(name for problem in problems for name in problem)
    varied = [
        name for name in names if any(problem.get(name) != first.get(name) for problem in problems)
    ]
    return {name: value for name, value in first.items() if name not in varied}, varied


def _table(
    title: str, common: str, varied: Sequence[str], rows: Sequence[Change], threshold: float
) -> Table:
    table = Table(title_justify="left", title_style="bold", caption_justify="left")
    # As they are: what stands in brackets would be markup.
    table.title, table.caption = Text(title), Text(common) if common else None
    for name in (*varied, "implementation"):
        table.add_column(Text(name), no_wrap=True)
    for name in ("old ms", "old min..max", "new ms", "new min..max", "runs", "new/old"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("kernel ratio", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=16)
    for row in rows:
        verdict = row.verdict
        text = verdict + (", a regression" if row.regressed(threshold) else "")
        style = "red" if row.regressed(threshold) else STYLES.get(verdict, "")
        if row.remarks:
            text += f" ({'; '.join(row.remarks)})"
        runs = [str(side.total_ms.runs) for side in (row.old, row.new) if side.total_ms]
        table.add_row(
            *(Text(str(row.what.get(name, "-"))) for name in varied),
            Text(row.new.label),
            *_times(row.old),
            *_times(row.new),
            ", ".join(runs) or "-",
            _ratio_text(row.ratio),
            _ratio_text(row.kernel_ratio),
            Text(text, style),
        )
    return table


def _times(row: Any) -> tuple[str, str]:
    times = row.total_ms
    if times is None:
        return "-", "-"
    return number(times.median), f"{number(times.min, 3)}..{number(times.max, 3)}"


def _ratio_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"
