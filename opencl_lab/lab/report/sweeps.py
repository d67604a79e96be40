"""A section of the page about a sweep: its ratios, its failures, its plots, all its rows."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.crossings import crossovers, verdict
from opencl_lab.lab.engine.row import Measurement, Series, Side
from opencl_lab.lab.engine.speedups import with_base
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.presentation.plots import plot_comparison, plots_of_sizes, plots_of_workers
from opencl_lab.lab.presentation.table import (
    Cell,
    CellTable,
    field,
    measured_columns,
    number,
    number_cell,
    ratio_text,
)
from opencl_lab.lab.report.documents import ReportedSweep, options_text

MOST_SIZES, MOST_OTHERS = 4, 6  # columns and rows of a table of ratios
MOST_BARS, MOST_LINES = 30, 16  # of a plot that can be read; tables have all rows
MOST_CROSSINGS = 8  # sentences
MOST_TROUBLES = 20
FEWEST_RUNS = 4  # of each row, so that equal speeds are called different in under 5 % of cases
SIDES: tuple[Side, ...] = ("host", "device")


@dataclass(frozen=True)
class Picture:
    """A plot as the address of an image, with all its data, and its caption."""

    address: str
    caption: str


@dataclass(frozen=True)
class Trouble:
    """A sentence about rows that failed, or (if not `failed`) could not be measured."""

    text: str
    failed: bool


@dataclass(frozen=True)
class Section:
    """A section about one sweep, the cost of calls, a search, or the comparison of two runs."""

    anchor: str
    title: str
    subtitle: str
    table: CellTable
    summary: Sequence[str] = ()
    troubles: Sequence[Trouble] = ()
    figures: Sequence[Picture] = ()
    ratios: CellTable | None = None


def sweep_section(sweep: ReportedSweep, peaks: Peaks | None, anchor: str) -> Section:
    """Return the section of a sweep; the device's `peaks` are the ceilings of a roofline."""
    sizes = [size for size, _ in sweep.series]
    title = f"{sweep.title}: {sweep.axis} from {sizes[0]:,} to {sizes[-1]:,}"
    return Section(
        anchor,
        title if sweep.varied else sweep.title,
        options_text(sweep.fixed),
        table_of(sweep),
        summary_of(sweep),
        troubles_of(sweep),
        figures_of(sweep, peaks),
        ratios_of(sweep),
    )


# ------------------------------------------------------------------------------------- words


def ranked(rows: Sequence[Measurement], side: Side) -> list[Measurement]:
    """Return the correct rows with data on one side, the fastest first."""
    return sorted((x for x in rows if x.ok and x.total_ms and x.data == side), key=_milliseconds)


def _milliseconds(row: Measurement) -> float:
    assert row.total_ms is not None  # as for all rows of `ranked`
    return row.total_ms.median


def by_speed(series: Series) -> list[str]:
    """Return the implementations that ran, by largest size, then by their times there."""
    found = {
        row.implementation: (-size, row.total_ms.median)
        for size, rows in sorted(series, key=lambda item: item[0])
        for row in rows
        if row.ok and row.total_ms
    }
    return sorted(found, key=lambda name: found[name])


def summary_of(sweep: ReportedSweep) -> list[str]:
    """Return sentences about too few runs, and who overtakes whom."""
    timed = [row.total_ms for _, rows in sweep.series for row in rows if row.ok and row.total_ms]
    if not timed:
        return ["Nothing was measured with a correct result."]
    fewest = min(times.runs for times in timed)
    text = f"Some rows have only {counted(fewest, 'run')}, so that their noise is hardly known"
    said = [f"{text}: small differences may be chance."] * (fewest < FEWEST_RUNS)
    if sweep.varied:
        names = [name for name in by_speed(sweep.series) if name.startswith("opencl:")]
        found = [str(x) + "." for x in crossovers(sweep.series) if x.implementation in names[:1]]
        said += found[:MOST_CROSSINGS]
    return said


def troubles_of(sweep: ReportedSweep) -> list[Trouble]:
    """Return a sentence for each implementation and kind of failure, with a reason and sizes."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for size, rows in sweep.series:
        for row in rows:
            if not row.ok:
                found.setdefault((row.implementation, row.status), {})[size] = row.reason
    troubles = []
    for (name, status), reasons in found.items():
        what = "was not measured" if status == "unavailable" else f"failed ({status})"
        first, last = f"{min(reasons):,}", f"{max(reasons):,}"
        span = first if len(reasons) == 1 else f"{first} to {last}"
        where = f" at {sweep.axis} = {span}" if len(reasons) < len(sweep.series) else ""
        reason = next(filter(None, reasons.values()), "")
        troubles.append(Trouble(f"{name} {what}{where}" + f": {reason}" * bool(reason),
                                status != "unavailable"))  # fmt: skip
    rest = troubles[MOST_TROUBLES:]
    if rest:
        said = f"and {len(rest)} more; see the table"
        troubles[MOST_TROUBLES:] = [Trouble(said, any(item.failed for item in rest))]
    return troubles


# ------------------------------------------------------------------------------------ tables


def ratios_of(sweep: ReportedSweep) -> CellTable | None:
    """Return a table of ratios at a few sizes, or None if no row is correct.

    For each side of the data, the first row has the time of the fastest OpenCL algorithm in ms;
    each other row has the ratio of its time to that. Without OpenCL rows, the fastest
    implementation takes their place; without others, the OpenCL algorithms are compared with each
    other. If there are many others, the slowest are only named in the caption.
    """
    sizes = [size for size, rows in sweep.series if any(ranked(rows, side) for side in SIDES)]
    if not sizes:
        return None
    if len(sizes) > MOST_SIZES:
        step = (len(sizes) - 1) / (MOST_SIZES - 1)
        sizes = [sizes[round(index * step)] for index in range(MOST_SIZES)]
    lines, left_out = list[list[Cell]](), list[str]()
    for side in SIDES:
        series = [(size, ranked(rows, side)) for size, rows in sweep.series]
        rows = [row for _, items in series for row in items]
        ours = {row.implementation for row in rows if row.kind == "opencl"}
        names = by_speed(series)
        others = [name for name in names if name not in ours] or names * (len(names) > 1)
        at = {size: {row.implementation: row for row in items} for size, items in series}
        best = {
            size: next((row for name, row in at[size].items() if not ours or name in ours), None)
            for size in sizes
        }
        base = ("OpenCL" if ours else "the fastest") + "@device" * (side == "device")
        if names:
            lines.append([Cell(f"{base}, ms", heads=True), *map(_time_cell, best.values())])
        for name in others[:MOST_OTHERS]:
            cells = [_ratio_cell(best[size], at[size].get(name)) for size in sizes]
            lines.append([Cell(name, heads=True), *cells])
        left_out += others[MOST_OTHERS:]
    axis, caption = sweep.axis, f"Slower and not shown here: {', '.join(left_out)}."
    heads = [f"by {axis}", *(f"{n:,}" for n in sizes)] if axis else ["", "total time"]
    return CellTable(heads, lines, caption * bool(left_out))


def _time_cell(row: Measurement | None) -> Cell:
    """Return the cell of the median of a row; a remark says which one it is."""
    if row is None:
        return Cell()
    cell = number_cell(_milliseconds(row), 3)
    return Cell(cell.text, cell.order, tip=row.label)


def _ratio_cell(ours: Measurement | None, other: Measurement | None) -> Cell:
    """Return how many times as long the other takes, marked if that is within noise."""
    if ours is None or other is None or not _milliseconds(ours) or not _milliseconds(other):
        return Cell()
    assert ours.total_ms is not None and other.total_ms is not None
    found = verdict(ours.total_ms, other.total_ms)
    ratio = _milliseconds(other) / _milliseconds(ours)
    takes = (f"{row.label} takes {number(_milliseconds(row), 3)} ms" for row in (ours, other))
    mark = "\N{ALMOST EQUAL TO}" if found == "level" else ""
    return Cell(mark + ratio_text(ratio), ratio, found, tip=", ".join(takes))


def table_of(sweep: ReportedSweep) -> CellTable:
    """Return the rows of a sweep by size, with the columns that all tables of rows have."""
    series, bases = with_base(sweep.series)
    sizes = {sweep.size_of(row): row.leading for row in sweep.rows}
    items = [(sizes[size], row) for size, rows in series for row in rows]
    columns: dict[str, Callable[[tuple[Mapping[str, Any], Measurement]], Cell]] = {
        name: partial(lambda cell, item: cell(item[0]), field(name)) for name in sweep.varied
    }
    for head, made in measured_columns([row for _, row in items], bases).items():
        columns[head] = partial(lambda cell, item: cell(item[1]), made)
    runs = sorted({row.total_ms.runs for _, row in items if row.total_ms})
    span = " to ".join(str(count) for count in dict.fromkeys((runs[0], runs[-1]))) if runs else ""
    return CellTable.of(items, columns, f"Each time is the median of {span} runs." if runs else "")


# ------------------------------------------------------------------------------------- plots


def picture_of(caption: str, draw: Callable[..., None]) -> Picture:
    """Return what `draw` draws, without a title, as an image."""
    written = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its fonts lack letters; browsers do not
        draw(written, title="")
    text = base64.b64encode(written.getvalue()).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{text}", caption)


def figures_of(sweep: ReportedSweep, peaks: Peaks | None) -> list[Picture]:
    """Draw a sweep; for a single problem, a bar for each implementation."""
    series = with_base(sweep.series)[0]
    rows = [row for _, items in series for row in items]
    if not any(row.total_ms and row.total_ms.max > 0 for row in rows):
        return []
    if not sweep.varied:
        timed = sorted((row for row in rows if row.total_ms is not None), key=_milliseconds)
        text = f"Total time of a call{_of_many(MOST_BARS, len(timed), 'rows')}"
        bars = picture_of(text, partial(plot_comparison, rows=timed[:MOST_BARS]))
        return [bars, *_at_one_size(rows, "")]
    names = by_speed(series)
    remark = _of_many(MOST_LINES, len(names), "implementations")
    if remark:
        shown = set(names[:MOST_LINES])
        series = [(n, [row for row in x if row.implementation in shown]) for n, x in series]
    drawn = [
        picture_of(f"{plot.caption}{remark}", plot.draw)
        for plot in plots_of_sizes(series, sweep.axis, peaks)
        if plot.kind != "efficiency"
    ]
    size, last = series[-1]
    return [*drawn, *_at_one_size(last, f", {sweep.axis} = {size:,}")]


def _of_many(most: int, count: int, what: str) -> str:
    return f" (the {most} fastest of {count:,} {what})" if count > most else ""


def _at_one_size(rows: Sequence[Measurement], where: str) -> list[Picture]:
    """Draw what there is by workers, and where the time of rows over ranks goes."""
    return [picture_of(f"{plot.caption}{where}", plot.draw) for plot in plots_of_workers(rows)]
