"""Plots of comparisons and sweeps, written to files. Matplotlib is imported only here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.sweep import Crossover
from opencl_lab.operation import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from opencl_lab.comparison.drawing import (
    large_number,
    legend_beside,
    plain_scale,
    saved_figure,
    set_title,
)

__all__ = [
    "group_name",
    "legend_beside",
    "plain_scale",
    "plot_comparison",
    "plot_curves",
    "plot_speedup",
    "plot_throughput",
    "plot_times",
    "set_title",
]

WIDTH = 9.0  # inches, of a plot over sizes
ROW = 9.0  # points between rows of numbers above a diagram
LEAST_DISTANCE = 0.035  # between the labels of two sizes, as a share of the axis
OPENCL, OTHER = "#c0392b", "#5d6d7e"
MARKERS = "os^Dv*<>pPX"


def plot_comparison(
    path: Path,
    rows: Sequence[Measurement],
    title: str,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw the total time of each implementation as a bar, with its spread and speed-up.

    Parameters
    ----------
    path : Path
    rows : sequence of Measurement
    title : str
    pictures : mapping of str to numpy.ndarray, optional
        Images to show above, by title.
    """
    measured = [row for row in rows if row.total_ms is not None]
    measured.sort(key=lambda row: row.total_ms.median if row.total_ms else 0, reverse=True)

    def draw(axes: Axes) -> None:
        for position, row in enumerate(measured):
            times = row.total_ms
            assert times is not None  # kept above
            spread = [[times.median - times.min], [times.max - times.median]]
            (bar,) = axes.barh(
                position,
                times.median,
                xerr=spread,
                color=OPENCL if row.kind == "opencl" else OTHER,
                error_kw={"elinewidth": 1, "capsize": 2},
            )
            bar.set_gid(group_name(row.implementation))
            speedup = "" if row.speedup is None else f", {row.speedup:.2f}x"
            verdict = "" if row.ok else f"  {row.status}"
            axes.annotate(
                f" {times.median:.3g} ms{speedup}{verdict}",
                (times.max, position),
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(measured)), [row.implementation for row in measured])
        axes.set_xlabel("total time in ms of a call (median, min and max)")
        axes.set_xlim(0, 1.3 * max((r.total_ms.max for r in measured if r.total_ms), default=1))
        axes.spines[["top", "right"]].set_visible(False)
        set_title(axes, title, 6.2)

    saved_figure(path, draw, 8, 1.2 + 0.4 * max(len(measured), 1), pictures)


def plot_curves(path: Path, curves: Curves, title: str) -> None:
    """Draw a result, not how long it took."""

    def draw(axes: Axes) -> None:
        for name, values in curves.values.items():
            axes.plot(curves.points, values, linewidth=0.8, label=name)
        axes.set_xlabel(curves.x_label)
        axes.set_ylabel(curves.y_label)
        axes.grid(True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        if len(curves.values) > 1:
            legend_beside(axes)
        set_title(axes, title, 7)

    saved_figure(path, draw, 8, 4.5)


def group_name(implementation: str, sizes: Sequence[int] = ()) -> str:
    """Return what an SVG calls the marks of an implementation, one per size, or its bar."""
    return f"marks|{implementation}|{','.join(map(str, sizes))}"


Series = Sequence[tuple[int, Sequence[Measurement]]]
"""Size and the rows measured at it."""


def _lines(axes: Axes, series: Series, value: Callable[[Measurement], float | None]) -> None:
    """Draw one line per implementation, bold for OpenCL, in a band from min to max.

    What has its data on the device is dashed, in the colour that it has on the host. A size of 0
    has no logarithm.
    """
    colours = _colours()
    given: dict[str, int] = {}
    for name in dict.fromkeys(row.implementation for _, rows in series for row in rows):
        points = []
        for size, rows in series:
            for row in rows:
                middle, times = value(row), row.total_ms
                if size > 0 and row.implementation == name and row.ok and middle and times:
                    ends = (times.min / times.median, times.max / times.median)
                    # A rate grows where a time shrinks; the band is the same.
                    ends = ends if value is _total else (1 / ends[1], 1 / ends[0])
                    points.append((size, middle, middle * ends[0], middle * ends[1]))
        if not points:
            continue
        sizes, middles, lows, highs = zip(*points, strict=True)
        base = name.removesuffix("@device")
        index = given.setdefault(base, len(given))
        colour, marker = colours[index % len(colours)], MARKERS[index % len(MARKERS)]
        style: dict[str, Any] = {"color": colour, "linestyle": "-" if name == base else "--"}
        style["linewidth"] = 2.2 if name.startswith("opencl:") else None
        style["gid"] = group_name(name, sizes)
        axes.plot(sizes, middles, label=name, marker=marker, markersize=4, **style)
        axes.fill_between(sizes, lows, highs, color=colour, alpha=0.15, linewidth=0)
    _size_axis(axes, [size for size, _ in series if size > 0])
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)


def _colours() -> list[Any]:
    """Return distinct colours: ten full ones, then ten light ones."""
    from matplotlib import color_sequences

    return [*color_sequences["tab20"][::2], *color_sequences["tab20"][1::2]]


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the axis of sizes: logarithmic, with plain numbers at what was measured."""
    axes.set_xscale("log")
    axes.minorticks_off()
    if not sizes:
        return
    span = math.log(sizes[-1] / sizes[0]) or 1.0
    longest = max(len(str(size)) for size in sizes)
    shown: list[int] = []
    for size in reversed(sizes):  # the largest matters most
        if not shown or math.log(shown[-1] / size) >= LEAST_DISTANCE * span:
            shown.append(size)
    crowded = len(shown) * longest > WIDTH * 8
    axes.set_xticks(shown, [str(size) for size in shown], rotation=45 if crowded else 0)
    if crowded:
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _total(row: Measurement) -> float | None:
    return row.total_ms.median if row.total_ms else None


def _rings(
    axes: Axes,
    series: Series,
    crossings: Sequence[Crossover],
    value: Callable[[Measurement], float | None],
    every: bool = False,
) -> int:
    """Mark where lines cross beyond noise, and number those of two algorithms of ours, or all.

    The numbers stand above the diagram, in as many rows as they need, which are returned; the
    legend explains them.
    """
    sizes = [size for size, _ in series if size > 0]
    least = max(series[0][0], 0)
    interpolated = [c for c in crossings if c.size is not None and not c.level and c.size > least]
    places: list[list[float]] = []
    for crossing in sorted(interpolated, key=lambda item: item.size or 0):
        assert crossing.size is not None  # kept above
        points = {
            size: middle
            for size, rows in series
            for row in rows
            if size > 0 and row.ok and row.implementation == crossing.implementation
            if (middle := value(row))
        }
        logarithms = np.log(list(points)), np.log(list(points.values()))
        height = math.exp(float(np.interp(math.log(crossing.size), *logarithms)))
        both = crossing.reference.startswith("opencl:")
        size = 11 - 4 * both
        axes.plot(crossing.size, height, "o", color="0.2", fillstyle="none", markersize=size)
        if not (both or every):
            continue
        number = f"{1 + sum(map(len, places))}"
        share = math.log(crossing.size / sizes[0]) / (math.log(sizes[-1] / sizes[0]) or 1.0)
        row = next((r for r in places if share - r[-1] >= LEAST_DISTANCE), None)
        if row is None:
            places.append(row := [])
        row.append(share)
        axes.axvline(crossing.size, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            number,
            (crossing.size, 1),
            xytext=(0, 2 + ROW * places.index(row)),
            textcoords="offset points",
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=7,
        )
        text = f"{number}: {crossing.implementation} from {crossing.size_text}"
        text += f", over {crossing.reference}" * every
        axes.plot([], [], linestyle=":", color="0.6", linewidth=0.8, label=text)
    return len(places)


def plot_times(
    path: Path, series: Series, size_name: str, title: str, crossings: Sequence[Crossover] = ()
) -> None:
    """Draw total time against size, both logarithmic, one line per implementation.

    Where one becomes faster for good than another, `crossings`, is a ring.
    """

    def draw(axes: Axes) -> None:
        _lines(axes, series, _total)
        rows = _rings(axes, series, crossings, _total)
        plain_scale(axes)
        axes.set_xlabel(size_name)
        axes.set_ylabel("total time in ms (median, min and max)")
        legend_beside(axes)
        set_title(axes, title, WIDTH - 1, 6 + ROW * rows)

    saved_figure(path, draw, WIDTH, 5)


def plot_throughput(
    path: Path, series: Series, size_name: str, title: str, crossings: Sequence[Crossover] = ()
) -> None:
    """Draw throughput against size, both logarithmic, one line per implementation.

    Where one overtakes another for good, `crossings`, is a ring with a number that the legend
    explains.
    """

    def draw(axes: Axes) -> None:
        _lines(axes, series, lambda row: row.throughput)
        rows = _rings(axes, series, crossings, lambda row: row.throughput, every=True)
        units = dict.fromkeys(row.throughput_unit for _, rows in series for row in rows)
        if axes.lines:
            plain_scale(axes, write=large_number)
        axes.set_xlabel(size_name)
        axes.set_ylabel(f"{next(filter(None, units), '')} (by total time; median, min and max)")
        legend_beside(axes)
        set_title(axes, title, WIDTH - 1, 6 + ROW * rows)

    saved_figure(path, draw, WIDTH, 5)


def plot_speedup(path: Path, series: Series, size_name: str, baseline: str, title: str) -> None:
    """Draw the speed-up over the baseline against size."""

    def draw(axes: Axes) -> None:
        _lines(axes, series, lambda row: row.speedup)
        axes.axhline(1, color="0.5", linewidth=1, linestyle="--")
        if axes.lines[:-1]:
            plain_scale(axes, "x")
        axes.set_xlabel(size_name)
        axes.set_ylabel(f"speed-up over {baseline} (total time, median, min and max)")
        legend_beside(axes)
        set_title(axes, title, WIDTH - 1)

    saved_figure(path, draw, WIDTH, 5)
