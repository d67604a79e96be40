"""Sections about documents of `oclab bench --compare`: two runs compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results, times_of
from opencl_lab.lab.presentation.changes import counted_verdicts, problem_fields
from opencl_lab.lab.presentation.table import finite, number, number_cell
from opencl_lab.lab.report.documents import objects, texts
from opencl_lab.lab.report.figures import Picture, Quotient, picture_of, plot_ratios
from opencl_lab.lab.report.summary import Trouble

MOST_RATIOS = 40  # largest number of rows in a plot; those that changed most are kept


def compared_rows(results: Results) -> list[dict[str, Any]]:
    """Return the rows that are in both runs."""
    return [row for row in objects(results.content.get("results")) if "verdict" in row]


def changes_text(results: Results) -> list[str]:
    """Return sentences about how many rows changed, and the greatest loss and gain."""
    rows = compared_rows(results)
    verdicts = counted_verdicts(str(row["verdict"]) for row in rows)
    sentences = [f"{len(rows)} rows are in both runs: {verdicts}."]
    threshold = finite(results.content.get("threshold"))
    worse = sum(row.get("regression") is True for row in rows)
    limit = f"more than {threshold:g} times as long" if threshold else "too long"
    text = f"OpenCL rows that fail now or take {limit}, beyond noise"
    sentences.append(f"{counted(worse, 'regression')}: {text}.")
    for verdict, what, best in (("slower", "loss", max), ("faster", "gain", min)):
        changed = [item for item in _quotients(rows) if item.verdict == verdict]
        if changed:
            one = best(changed, key=lambda item: item.ratio)
            text = f"{one.name} takes {number(one.ratio, 3)} times the old time"
            sentences.append(f"The greatest {what}: {text}.")
    return sentences


def changes_troubles(results: Results) -> list[Trouble]:
    """Return other differences between the runs, and rows that are in only one of them."""
    found = [Trouble(text, True) for text in texts(results.content.get("warnings"))]
    for run in ("old", "new"):
        names = texts(results.content.get(f"only_{run}"))
        if names:
            shown = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" * (len(names) > 3))
            found.append(Trouble(f"only in the {run} run: {shown}", False))
    return found


def changes_figures(results: Results) -> list[Picture]:
    """Draw new over old time of the rows that changed most."""
    ratios = _quotients(compared_rows(results))
    if not ratios:
        return []
    kept = sorted(ratios, key=lambda item: -max(item.ratio, 1 / item.ratio))[:MOST_RATIOS]
    shown = [item for item in ratios if item in kept]
    caption = "New time over old time"
    if len(shown) < len(ratios):
        caption += f" (the {len(shown)} of {len(ratios):,} rows that changed most)"
    return [picture_of(caption, partial(plot_ratios, rows=shown))]


def _quotients(rows: Sequence[Mapping[str, Any]]) -> list[Quotient]:
    """Return the ratios of rows with times, named by what distinguishes their problems."""
    leading, _ = problem_fields(rows)
    found = []
    for row in rows:
        old, new, ratio = times_of(row, "old_ms"), times_of(row, "new_ms"), finite(row.get("ratio"))
        if old and new and ratio and min(ratio, *old.interval, *new.interval) > 0:
            given = [name for name in leading if row.get(name) is not None]
            options = [f"{name} {number_cell(row[name]).text}" for name in given]
            name = ", ".join([str(row.get("implementation") or ""), *options])
            found.append(Quotient(name, ratio, *new.over(old), str(row["verdict"])))
    return found
