"""Tables of ratios by size: times of other implementations over that of OpenCL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opencl_lab.lab.engine.crossings import verdict
from opencl_lab.lab.engine.row import Measurement, Series, Side
from opencl_lab.lab.presentation.table import Cell, CellTable, number, number_cell, ratio_text
from opencl_lab.lab.report.summary import SIDES, by_speed, milliseconds, ranked

MOST_SIZES = 4  # columns
MOST_OTHERS = 6  # rows


def ratios_of(series: Series, axis: str) -> CellTable | None:
    """Return the table of ratios by size, or None if no row is correct.

    `axis` is the name of the sizes; empty for a single problem.

    The first row has the time of the fastest OpenCL algorithm in ms; each other row has the ratio
    of its time to that. Without OpenCL rows, the fastest implementation takes their place; without
    others, the OpenCL algorithms are compared with each other. If there are many others, the
    slowest are only named in the caption.
    """
    shown, left_out = list[tuple[str, dict[int, Cell]]](), list[str]()
    for side in SIDES:
        found = list(_rows(series, side))
        shown += found[: 1 + MOST_OTHERS]
        left_out += [name for name, _ in found[1 + MOST_OTHERS :]]
    caption = f"Slower and not shown here: {', '.join(left_out)}." if left_out else ""
    return by_size(shown, axis, caption)


def by_size(
    rows: Sequence[tuple[str, Mapping[int, Cell]]], axis: str, caption: str = ""
) -> CellTable | None:
    """Return named rows of cells by size as a table of a few sizes; None without cells."""
    sizes = sorted({size for _, cells in rows for size in cells})
    if not sizes:
        return None
    if len(sizes) > MOST_SIZES:
        distance = (len(sizes) - 1) / (MOST_SIZES - 1)
        sizes = [sizes[round(index * distance)] for index in range(MOST_SIZES)]
    heads = [f"by {axis}" if axis else "", *(f"{n:,}" if axis else "total time" for n in sizes)]
    shown = [[Cell(name, heads=True), *(x.get(n, Cell()) for n in sizes)] for name, x in rows]
    return CellTable(heads, shown, caption)


def _rows(series: Series, side: Side) -> Iterator[tuple[str, dict[int, Cell]]]:
    """Yield the name of each row, and its cells by size: OpenCL, then others, the fastest first."""
    found = {size: {row.implementation: row for row in rows}
             for size, items in series if (rows := ranked(items, side))}  # fmt: skip
    every = [row for rows in found.values() for row in rows.values()]
    if not every:
        return
    ours = {row.implementation for row in every if row.kind == "opencl"}
    names = {row.implementation for row in every}
    bases = ours or names
    best = {  # the fastest is first
        size: next(row for name, row in rows.items() if name in bases)
        for size, rows in found.items()
        if bases & rows.keys()
    }
    where = "@device" if side == "device" else ""
    base = f"OpenCL{where}, ms" if ours else f"the fastest{where}, ms"
    yield base, {size: time_cell(row) for size, row in best.items()}
    others = names - ours or bases
    last = by_speed([(size, list(found[size].values())) for size in sorted(found)])
    for name in (name for name in last if name in others and len(names) > 1):
        both = [size for size, rows in found.items() if name in rows and size in best]
        yield name, {size: _ratio(best[size], found[size][name]) for size in both}


def time_cell(row: Measurement) -> Cell:
    """Return the cell of the median of a row; a remark says which one it is."""
    cell = number_cell(milliseconds(row), 3)
    return Cell(cell.text, cell.order, tip=row.label)


def _ratio(ours: Measurement, other: Measurement) -> Cell:
    """Return how many times as long the other takes, marked if that is within noise."""
    assert ours.total_ms is not None and other.total_ms is not None  # see `ranked`
    if not milliseconds(ours) or not milliseconds(other):
        return Cell()
    found = verdict(ours.total_ms, other.total_ms)
    ratio = milliseconds(other) / milliseconds(ours)
    takes = (f"{row.label} takes {number(milliseconds(row), 3)} ms" for row in (ours, other))
    mark = "\N{ALMOST EQUAL TO}" if found == "level" else ""
    return Cell(mark + ratio_text(ratio), ratio, found, tip=", ".join(takes))
