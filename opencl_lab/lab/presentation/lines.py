"""Building blocks of plots of a sweep: lines over sizes, and rings where they cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opencl_lab.lab.engine.crossings import Crossover
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.presentation.drawing import pale_grid, plain_number, plain_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0  # inches, of a plot over sizes
MOST_RINGS = 6
MOST_MARKS = 64  # sizes; with more, lines have no marks
MARKERS = "os^Dv*<>pPX"

Value: TypeAlias = Callable[[Measurement], float | None]
"""Function from a row to the value that a plot shows."""


def styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the styles of lines by implementation.

    OpenCL lines are bold. Rows with data on the device have dashed lines and hollow marks, in the
    colour of the same implementation with data on the host.
    """
    from matplotlib import color_sequences

    # Ten saturated colours, then ten light ones.
    colours = [*color_sequences["tab20"][::2], *color_sequences["tab20"][1::2]]
    given: dict[str, int] = {}
    found = {}
    for name in names:
        base = name.removesuffix("@device")
        index = given.setdefault(base, len(given))
        there = name != base
        found[name] = {
            "color": colours[index % len(colours)],
            "marker": MARKERS[index % len(MARKERS)],
            "markersize": 5 if there else 4,
            "markerfacecolor": "white" if there else None,
            "linestyle": "--" if there else "-",
            "linewidth": 2.2 if name.startswith("opencl:") else None,
        }
    return found


def draw_lines(
    axes: Axes,
    series: Series,
    value: Value,
    label: Callable[[Sequence[Measurement]], str] | None = None,
) -> None:
    """Draw a line for each implementation, in a band from min to max; see `styles`.

    A size of 0 is left out, since it has no logarithm. Implementations without values take a
    colour all the same, so that all plots of the series agree. `label` returns the name of the
    line of some rows; by default it is the implementation.
    """
    named: dict[str, list[Measurement]] = {}
    for _, rows in series:
        for row in rows:
            shown = [row] if row.ok and value(row) else []
            named.setdefault(row.implementation, []).extend(shown)
    for name, style in styles(named).items():
        points = [point for size, rows in series for point in _points(name, size, rows, value)]
        if not points:
            continue
        sizes, middles, lows, highs = zip(*points, strict=True)
        text = name if label is None else label(named[name])
        marks = {"marker": "none"} if len(series) > MOST_MARKS else {}
        axes.plot(sizes, middles, label=text, **{**style, **marks})
        if len(sizes) == 1:  # the band has no width
            axes.vlines(sizes, lows, highs, color=style["color"], linewidth=1)
        axes.fill_between(sizes, lows, highs, color=style["color"], alpha=0.15, linewidth=0)
    plain_scale(axes.xaxis)
    found = [size for size, _ in series if size > 0]
    if len(found) == 1:
        axes.set_xlim(found[0] / 2, found[0] * 2)
    pale_grid(axes)


def _points(
    name: str, size: int, rows: Sequence[Measurement], value: Value
) -> Iterator[tuple[int, float, float, float]]:
    """Yield the points of an implementation at one size: its value, and the ends of the band."""
    for row in rows:
        middle, times = value(row), row.total_ms
        if size > 0 and row.implementation == name and row.ok and middle and times:
            ends = (times.min / times.median, times.max / times.median)
            # The largest rate belongs to the smallest time.
            low, high = ends if value is total else (1 / ends[1], 1 / ends[0])
            yield size, middle, middle * low, middle * high


def total(row: Measurement) -> float | None:
    """Return the median of the total time in milliseconds."""
    return row.total_ms.median if row.total_ms else None


def draw_rings(
    axes: Axes, series: Series, crossings: Sequence[Crossover], value: Value
) -> list[str]:
    """Mark crossovers with rings and numbers; return an explanation of each number.

    Crossovers of one implementation at one size share a ring. If there are too many, those of
    OpenCL algorithms with each other have none.
    """
    least = max(series[0][0], 0) if series else 0
    found = [item for item in crossings if item.size is not None and item.size > least]
    others = [item for item in found if not item.reference.startswith("opencl:")]
    marked: dict[tuple[float, str], list[Crossover]] = {}
    for item in others if others and len(found) > MOST_RINGS else found:
        assert item.size is not None  # as for all in `found`
        marked.setdefault((item.size, item.implementation), []).append(item)
    notes, shown = [], 0
    for number, (size, name) in enumerate(sorted(marked)[:MOST_RINGS], start=1):
        height, items = _height(series, name, size, value), marked[size, name]
        axes.plot(size, height, "o", color="0.2", fillstyle="none", markersize=10)
        axes.annotate(str(number), (size, height), (6, 6), textcoords="offset points", fontsize=8)
        where = items[0].about + plain_number(float(items[0].size_text))
        over = (f"{x.reference}{' (level just before)' * x.level_before}" for x in items)
        notes.append(f"{number}: {name} from {where}, over {', '.join(over)}")
        shown += len(items)
    left_out = len(found) - shown
    return notes + [f"and {left_out} more, which are not marked"] * (left_out > 0)


def _height(series: Series, implementation: str, at: float, value: Value) -> float:
    """Return the value of an implementation's line at a size; both scales are logarithmic."""
    points = {
        size: middle
        for size, rows in series
        for row in rows
        if size > 0 and row.ok and row.implementation == implementation
        if (middle := value(row))
    }
    logarithms = np.log(list(points)), np.log(list(points.values()))
    return math.exp(float(np.interp(math.log(at), *logarithms)))
