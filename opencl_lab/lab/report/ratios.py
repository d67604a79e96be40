"""Tables of ratios by size: times of other implementations over that of OpenCL."""

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
WIDTH, HEIGHT, MARGIN = 72.0, 20.0, 3.0  # of a sparkline, in its own units


def ratios_of(series: Series, axis: str) -> PageTable | None:
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
    return _table(shown, axis, caption)


def medians_of(series: Series, axis: str) -> PageTable | None:
    """Return the table of medians in ms by size, with a row for each name; None without rows.

    The sizes are those that several names share, if there are any.
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
    """Return rows of cells by size as a table of a few sizes; the sparkline has all ratios."""
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
    """Return how many times as long the other takes, marked if that is within noise."""
    assert ours.total_ms is not None and other.total_ms is not None  # see `ranked`
    if not milliseconds(ours) or not milliseconds(other):
        return Cell("")
    found = verdict(ours.total_ms, other.total_ms)
    ratio = milliseconds(other) / milliseconds(ours)
    takes = (f"{row.label} takes {number(milliseconds(row), 3)} ms" for row in (ours, other))
    mark = "\N{ALMOST EQUAL TO}" if found == "level" else ""
    return Cell(f"{mark}{times_text(ratio)}x", ratio, found, tip=", ".join(takes))


def _spread(sizes: Sequence[int]) -> list[int]:
    """Return at most as many sizes as there are columns, with the first and the last."""
    if len(sizes) <= MOST_SIZES:
        return list(sizes)
    distance = (len(sizes) - 1) / (MOST_SIZES - 1)
    return [sizes[round(index * distance)] for index in range(MOST_SIZES)]


def sparkline(points: Sequence[tuple[float, float]]) -> Markup:
    """Return a plot of ratios by size, small enough for a cell, with a line at 1.

    Both scales are logarithmic. There are at least two points, the smallest size first, and all
    ratios are above 0.
    """
    across = [math.log(max(size, 1)) for size, _ in points]
    up = [math.log(ratio) for _, ratio in points]
    low, high = min(0.0, *up), max(0.0, *up)

    def place(x: float, y: float) -> str:
        right = MARGIN + (x - across[0]) / (across[-1] - across[0] or 1.0) * (WIDTH - 2 * MARGIN)
        down = HEIGHT - MARGIN - (y - low) / (high - low or 1.0) * (HEIGHT - 2 * MARGIN)
        return f"{right:.1f} {down:.1f}"

    line = "L".join(place(x, y) for x, y in zip(across, up, strict=True))
    end = dict(zip(("cx", "cy"), place(across[-1], up[-1]).split(), strict=True))
    dot = Markup('<circle cx="{cx}" cy="{cy}" r="2.2"/>').format(**end)
    one = Markup('<path class="one" d="M{}L{}"/>').format(
        place(across[0], 0.0), place(across[-1], 0.0)
    )
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return Markup('<svg class="spark" viewBox="{}" aria-hidden="true">{}<path d="M{}"/>{}</svg>'
                  ).format(box, one, line, dot)  # fmt: skip
