"""Building blocks of plots of a sweep: lines over sizes, and rings where they cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opencl_lab.lab.engine.crossings import Crossover
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.presentation.drawing import pale_grid, plain_number, size_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0  # inches, of a plot over sizes
ROW = 12.0  # points between rows of numbers above a plot
LEAST_DISTANCE = 0.03  # between two numbers above a plot, as a share of its width
MOST_RINGS = 6
MARKERS = "os^Dv*<>pPX"


def group_name(implementation: str, sizes: Sequence[int] = ()) -> str:
    """Return the name in an SVG of the marks of an implementation, one per size, or of its bar."""
    return f"marks|{implementation}|{','.join(map(str, sizes))}"


Series: TypeAlias = Sequence[tuple[int, Sequence[Measurement]]]
"""Sizes, each with its measured rows."""

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
        axes.plot(sizes, middles, label=text, gid=group_name(name, sizes), **style)
        if len(sizes) == 1:  # the band has no width
            axes.vlines(sizes, lows, highs, color=style["color"], linewidth=1)
        axes.fill_between(sizes, lows, highs, color=style["color"], alpha=0.15, linewidth=0)
    size_scale(axes, [size for size, _ in series if size > 0])
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
) -> tuple[int, list[str]]:
    """Mark each crossover with a ring and a number.

    The numbers are above the plot, in as many rows as they need. Returns the number of rows, and
    an explanation of each number.
    """
    sizes = [size for size, _ in series if size > 0]
    shown, left_out = _marked(series, crossings)
    places: list[list[float]] = []
    notes = []
    for number, crossing in enumerate(shown, start=1):
        assert crossing.size is not None  # by `_marked`
        height = _height(series, crossing.implementation, crossing.size, value)
        size = 7 if crossing.reference.startswith("opencl:") else 11
        axes.plot(crossing.size, height, "o", color="0.2", fillstyle="none", markersize=size)
        share = math.log(crossing.size / sizes[0]) / (math.log(sizes[-1] / sizes[0]) or 1.0)
        free = (k for k, row in enumerate(places) if share - row[-1] >= LEAST_DISTANCE)
        above = next(free, len(places))
        places += [[]] * (above == len(places))
        places[above] = [*places[above], share]
        axes.axvline(crossing.size, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            str(number), (crossing.size, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 2 + ROW * above), textcoords="offset points",
            ha="center", va="bottom", fontsize=7,
        )  # fmt: skip
        where = crossing.about + plain_number(float(crossing.size_text))
        text = f"{number}: {crossing.implementation} from {where}"
        text += f", over {crossing.reference}" + ", level just before" * crossing.level_before
        notes.append(text)
    notes += [f"and {left_out} more, which are not marked"] * (left_out > 0)
    return len(places), notes


def _marked(series: Series, crossings: Sequence[Crossover]) -> tuple[list[Crossover], int]:
    """Return the crossovers that get a ring, the smallest size first, and how many get none.

    If there are too many, only the first one over each reference is kept.
    """
    least = max(series[0][0], 0)
    found = [c for c in crossings if c.size is not None and c.size > least]
    found.sort(key=lambda item: item.size or 0)
    if len(found) <= MOST_RINGS:
        return found, 0
    first: dict[str, Crossover] = {}
    for crossing in found:
        first.setdefault(crossing.reference, crossing)
    others = [c for name, c in first.items() if not name.startswith("opencl:")]
    shown = (others or found)[:MOST_RINGS]
    return shown, len(found) - len(shown)


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
