"""How many times as long as OpenCL each other takes, by size: a table with small pictures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from opencl_lab.lab.engine.crossings import verdict
from opencl_lab.lab.engine.row import Measurement, Side
from opencl_lab.lab.presentation.lines import Series
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.report.cells import Cell, PageTable, number_cell, table_without_empty
from opencl_lab.lab.report.summary import SIDES, by_speed, milliseconds, ranked, times_text

MOST_SIZES = 4  # columns
MOST_OTHERS = 6  # rows
WIDE, HIGH, EDGE = 72.0, 20.0, 3.0  # of a small picture, in units of its own


def ratios_of(series: Series, axis: str) -> PageTable | None:
    """Return the table of rows by size, None where no row is right.

    `axis` is what the sizes are, empty for a single problem.

    Above stands what the fastest of ours takes in ms; below, for each other, how many times as
    long it takes. Where nothing of ours was measured, the fastest of all stands in for it, and
    where nothing else was, ours are compared with each other. Of many others the slowest are only
    named below.
    """
    shown, left_out = list[tuple[str, dict[int, Cell]]](), list[str]()
    for side in SIDES:
        found = list(_rows(series, side))
        shown += found[: 1 + MOST_OTHERS]
        left_out += [name for name, _ in found[1 + MOST_OTHERS :]]
    caption = f"Slower and not shown here: {', '.join(left_out)}." if left_out else ""
    return _table(shown, axis, caption)


def medians_of(series: Series, axis: str) -> PageTable | None:
    """Return the table of medians in ms by size, a row for each name; None where there is none.

    The sizes are those that several have, if there are any.
    """
    found: dict[str, dict[int, Cell]] = {}
    for size, rows in series:
        for row in rows:
            found.setdefault(row.implementation, {})[size] = _time(row)
    counts = Counter(size for cells in found.values() for size in cells)
    shared = {size for size, count in counts.items() if count > 1} or set(counts)
    kept = {name: {size: cells[size] for size in cells.keys() & shared}
            for name, cells in found.items()}  # fmt: skip
    return _table(list(kept.items()), f"{axis}, ms" if axis else "")


def _table(
    rows: Sequence[tuple[str, Mapping[int, Cell]]], axis: str, caption: str = ""
) -> PageTable | None:
    """Return rows of cells by size as a table of a few sizes; the picture has all ratios."""
    sizes = _spread(sorted({size for _, cells in rows for size in cells}))
    if not sizes:
        return None
    heads = [f"by {axis}" if axis else "", ""]
    heads += [f"{size:,}" if axis else "total time" for size in sizes]
    shown = []
    for name, cells in rows:
        points = [(size, cell.order) for size, cell in cells.items() if cell.order and cell.style]
        line = Cell("", picture=sparkline(points)) if len(points) > 1 else Cell("")
        shown.append([Cell(name, heads=True), line, *(cells.get(x, Cell("")) for x in sizes)])
    table = table_without_empty(heads, shown, caption)
    # A phone has room for the first size and the last.
    ends = {0, len(table.kinds) - 1, len(table.kinds) - len(sizes)}
    kinds = [f"{kind} between" if kind == "number" and index not in ends else kind
             for index, kind in enumerate(table.kinds)]  # fmt: skip
    return replace(table, kinds=kinds)


def _rows(series: Series, side: Side) -> Iterator[tuple[str, dict[int, Cell]]]:
    """Yield the name of each row, and its cells by size: ours first, then the fastest others."""
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
    yield base, {size: _time(row) for size, row in best.items()}
    others = names - ours or bases
    last = by_speed([(size, list(found[size].values())) for size in sorted(found)])
    for name in (name for name in last if name in others and len(names) > 1):
        both = [size for size, rows in found.items() if name in rows and size in best]
        yield name, {size: _ratio(best[size], found[size][name]) for size in both}


def _time(row: Measurement) -> Cell:
    cell = number_cell(milliseconds(row), 3)
    return Cell(cell.text, cell.order, tip=row.label)


def _ratio(ours: Measurement, other: Measurement) -> Cell:
    """Return how many times as long the other takes, and whether that is beyond noise."""
    assert ours.total_ms is not None and other.total_ms is not None  # all that are ranked have it
    if not milliseconds(ours) or not milliseconds(other):
        return Cell("")
    told = verdict(ours.total_ms, other.total_ms)
    ratio = milliseconds(other) / milliseconds(ours)
    takes = (f"{row.label} takes {number(milliseconds(row), 3)} ms" for row in (ours, other))
    mark = "\N{ALMOST EQUAL TO}" if told == "level" else ""
    return Cell(f"{mark}{times_text(ratio)}x", ratio, told, tip=", ".join(takes))


def _spread(sizes: Sequence[int]) -> list[int]:
    """Return as many sizes as there are columns for, the first and the last among them."""
    if len(sizes) <= MOST_SIZES:
        return list(sizes)
    step = (len(sizes) - 1) / (MOST_SIZES - 1)
    return [sizes[round(index * step)] for index in range(MOST_SIZES)]


def sparkline(points: Sequence[tuple[float, float]]) -> Markup:
    """Return ratios by size as a small picture, both logarithmic, with a line at 1.

    There are two points at least, the least size first, and ratios are above 0.
    """
    across = [math.log(max(size, 1)) for size, _ in points]
    up = [math.log(ratio) for _, ratio in points]
    low, high = min(0.0, *up), max(0.0, *up)

    def place(x: float, y: float) -> str:
        right = EDGE + (x - across[0]) / (across[-1] - across[0] or 1.0) * (WIDE - 2 * EDGE)
        down = HIGH - EDGE - (y - low) / (high - low or 1.0) * (HIGH - 2 * EDGE)
        return f"{right:.1f} {down:.1f}"

    line = "L".join(place(x, y) for x, y in zip(across, up, strict=True))
    end = dict(zip(("cx", "cy"), place(across[-1], up[-1]).split(), strict=True))
    dot = Markup('<circle cx="{cx}" cy="{cy}" r="2.2"/>').format(**end)
    one = Markup('<path class="one" d="M{}L{}"/>').format(
        place(across[0], 0.0), place(across[-1], 0.0)
    )
    box = f"0 0 {WIDE:g} {HIGH:g}"
    return Markup('<svg class="spark" viewBox="{}" aria-hidden="true">{}<path d="M{}"/>{}</svg>'
                  ).format(box, one, line, dot)  # fmt: skip
