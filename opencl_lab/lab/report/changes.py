"""Sections about documents of `oclab bench --compare`: two runs compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results, times_of
from opencl_lab.lab.presentation.changes import counted_verdicts, varied
from opencl_lab.lab.presentation.lines import group_name
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.report.cells import (
    Cell,
    PageTable,
    number_cell,
    ratio_cell,
    spread_cell,
    table_without_empty,
)
from opencl_lab.lab.report.documents import finite, objects, texts
from opencl_lab.lab.report.plots import Ratio, plot_ratios
from opencl_lab.lab.report.summary import Trouble
from opencl_lab.lab.report.svg import Figure, figure_of

MOST_RATIOS = 40  # largest number of rows in a plot; those that changed most are kept
STYLES = {"faster": "ok", "works now": "ok", "slower": "failed", "fails now": "failed"}
COLUMNS = frozenset(
    (
        *("implementation", "kind", "data", "verdict", "ratio", "kernel_ratio", "remarks"),
        *("old_ms", "new_ms", "old_kernel_ms", "new_kernel_ms", "regression"),
    )
)


def _rows(results: Results) -> list[dict[str, Any]]:
    return [row for row in objects(results.content.get("results")) if "verdict" in row]


def changes_text(results: Results) -> list[str]:
    """Return sentences about how many rows changed, and the greatest loss and gain."""
    rows = _rows(results)
    leading = _leading(rows)
    verdicts = counted_verdicts(str(row["verdict"]) for row in rows)
    sentences = [f"{len(rows)} rows are in both runs: {verdicts}."]
    threshold = _positive(results.content.get("threshold"))
    worse = sum(row.get("regression") is True for row in rows)
    limit = f"more than {threshold:g} times as long" if threshold else "too long"
    text = f"OpenCL rows that fail now or take {limit}, beyond noise"
    sentences.append(f"{counted(worse, 'regression')}: {text}.")
    for verdict, what, best in (("slower", "loss", max), ("faster", "gain", min)):
        changed = [(r, row) for row in rows if row["verdict"] == verdict and (r := _ratio(row))]
        if changed:
            ratio, row = best(changed, key=lambda item: item[0])
            text = f"{_name(row, leading)} takes {number(ratio, 3)} times the old time"
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


def changes_table(results: Results) -> PageTable:
    """Return a table of the rows of both runs, with their verdicts."""
    rows = _rows(results)
    leading = _leading(rows)
    heads = [*leading, "implementation", "old ms", "old min \u2013 max", "new ms"]
    heads += ["new min \u2013 max", "new / old", "kernels new / old", "verdict", "remarks"]
    cells = []
    for row in rows:
        old, new = (times_of(row, name) for name in ("old_ms", "new_ms"))
        verdict = str(row["verdict"])
        style = STYLES.get(verdict, "")
        cells.append(
            [
                *(number_cell(row.get(name)) for name in leading),
                Cell(_text(row, "implementation"), style=_text(row, "kind"), heads=True),
                number_cell(old.median if old else None),
                spread_cell(old),
                number_cell(new.median if new else None),
                spread_cell(new),
                ratio_cell(_ratio(row), style),
                ratio_cell(_positive(row.get("kernel_ratio"))),
                Cell(verdict + ", a regression" * (row.get("regression") is True), style=style),
                Cell("; ".join(texts(row.get("remarks"))), style="note"),
            ]
        )
    return table_without_empty(heads, cells)


def _leading(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the options in which rows differ; they are the first columns."""
    return varied([{k: v for k, v in row.items() if k not in COLUMNS} for row in rows])


def changes_figures(results: Results, prefix: str) -> list[Figure]:
    """Draw new over old time of the rows that changed most."""
    rows = _rows(results)
    leading = _leading(rows)
    ratios = [ratio for row in rows if (ratio := _drawn(row, leading)) is not None]
    if not ratios:
        return []
    kept = sorted(ratios, key=lambda item: -max(item.ratio, 1 / item.ratio))[:MOST_RATIOS]
    shown = [item for item in ratios if item in kept]
    tips = {
        group_name(str(place), (0,)): f"{item.name}: {number(item.ratio, 3)} times the old time, "
        f"{number(item.low, 3)} to {number(item.high, 3)} by the spread: {item.verdict}"
        for place, item in enumerate(shown)
    }
    caption = "New time over old time"
    if len(shown) < len(ratios):
        caption += f" (the {len(shown)} of {len(ratios):,} rows that changed most)"
    return [figure_of(partial(plot_ratios, rows=shown), f"{prefix}-ratios", tips, caption)]


def _drawn(row: Mapping[str, Any], leading: Sequence[str]) -> Ratio | None:
    old, new, ratio = times_of(row, "old_ms"), times_of(row, "new_ms"), _ratio(row)
    if old is None or new is None or not ratio or not min(*old.interval, *new.interval) > 0:
        return None
    return Ratio(_name(row, leading), ratio, *new.over(old), str(row["verdict"]))


def _name(row: Mapping[str, Any], leading: Sequence[str]) -> str:
    """Return the implementation with the options that distinguish its problem."""
    given = [name for name in leading if row.get(name) is not None]
    options = [f"{name} {number_cell(row[name]).text}" for name in given]
    return ", ".join([_text(row, "implementation"), *options])


def _text(row: Mapping[str, Any], name: str) -> str:
    return str(row.get(name) or "")


def _ratio(row: Mapping[str, Any]) -> float | None:
    return _positive(row.get("ratio"))


def _positive(value: Any) -> float | None:
    found = finite(value)
    return found if found is not None and found > 0 else None
