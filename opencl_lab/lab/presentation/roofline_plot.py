"""The roofline plot: measured rates, and the rates that the device's measured peaks allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.measuring.roofline import Peaks, rate_text
from opencl_lab.lab.presentation.drawing import (
    Target,
    legend_below,
    pale_grid,
    plain_scale,
    saved_figure,
    set_title,
)
from opencl_lab.lab.presentation.lines import WIDTH, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST, LARGEST = 3.0, 9.0  # points; sizes of the marks of the smallest and the largest size
ROOM = 3.0  # factor by which the range of intensities exceeds the measured ones
ARITHMETIC = (("flops32", "FP32 peak", "-"), ("flops64", "FP64 peak", "--"))
TRAFFIC = (("cached_bytes", "within a cache", ":"), ("copy_bytes", "memory", "-."))


def _ceilings(
    peaks: Peaks, kinds: Sequence[tuple[str, str, str]]
) -> tuple[list[tuple[float, str, str]], float]:
    """Return rate, name and line style of each measured ceiling, and the highest rate."""
    found = [(rate, label, line) for name, label, line in kinds if (rate := getattr(peaks, name))]
    return found, max((rate for rate, *_ in found), default=math.inf)


def no_roofline(series: Series, peaks: Peaks | None) -> str:
    """Return why no roofline can be drawn; empty if one can."""
    rows = [row for size, rows in series for row in rows if _place(size, row)]
    if not rows:
        return "a roofline needs arithmetic, and no correct row has any"
    if peaks is None or not _ceilings(peaks, ARITHMETIC + TRAFFIC)[0]:
        return "`oclab doctor` measures the device's peaks, which a roofline needs"
    return ""


def plot_roofline(target: Target, series: Series, size_name: str, title: str, peaks: Peaks) -> None:
    """Draw GFLOP/s by total time over flops per byte of the problem, both logarithmic.

    There is a mark for each size and implementation; larger sizes have larger marks. The ceilings
    are the peaks that `oclab doctor` has measured: arithmetic, memory, caches.
    """

    def draw(axes: Axes) -> None:
        found = _points(series)
        placed = [point for points in found.values() for _, *point in points]
        (_, most), (_, steepest) = _ceilings(peaks, ARITHMETIC), _ceilings(peaks, TRAFFIC)
        ridge = most / steepest if max(most, steepest) < math.inf else math.inf
        low = min(ridge, *(x for x, _ in placed)) / ROOM
        high = max(x for x, _ in placed) * ROOM
        top = _draw_ceilings(axes, low, high, peaks)
        _draw_points(axes, found, [row.implementation for _, rows in series for row in rows])
        plain_scale(axes.yaxis)
        plain_scale(axes.xaxis)
        axes.set_xlim(low, high)
        axes.set_ylim(min(y for _, y in placed) / 2, 2 * max(top, *(y for _, y in placed)))
        axes.set_xlabel("arithmetic intensity of the problem in flops per byte")
        axes.set_ylabel(f"GFLOP/s by total time;\nlarger marks: larger {size_name}")
        pale_grid(axes)
        legend_below(axes)
        set_title(axes, title, WIDTH - 1)

    saved_figure(target, draw, WIDTH, 5)


def _place(size: int, row: Measurement) -> tuple[float, float] | None:
    """Return flops per byte and GFLOP/s of a correct row that has arithmetic, else None."""
    rate, work = row.gflops, row.work
    if size <= 0 or not row.ok or not rate or work is None or not work.bytes:
        return None
    return work.flops / work.bytes, rate


def _points(series: Series) -> dict[str, list[tuple[int, float, float]]]:
    """Return size, intensity and rate of each mark, by implementation."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for size, rows in series:
        for row in rows:
            place = _place(size, row)
            if place is not None:
                found.setdefault(row.implementation, []).append((size, *place))
    return found


def _draw_ceilings(axes: Axes, low: float, high: float, peaks: Peaks) -> float:
    """Draw the ceilings between two intensities; return the highest one, in GFLOP/s."""
    flat, most = _ceilings(peaks, ARITHMETIC)
    slopes, steepest = _ceilings(peaks, TRAFFIC)
    grey: dict[str, Any] = {"color": "0.4", "linewidth": 1.2}
    for rate, label, line in flat:
        begin = min(max(low, rate / steepest), high)
        text = f"{label}: {rate_text(rate, 'FLOP/s')}"
        axes.plot([begin, high], [rate / 1e9] * 2, label=text, linestyle=line, **grey)
    for rate, label, line in slopes:
        end = max(min(high, most / rate), low)
        text = f"{label}: {rate_text(rate, 'B/s')}"
        heights = [rate * low / 1e9, rate * end / 1e9]
        axes.plot([low, end], heights, label=text, linestyle=line, **grey)
    return min(most, steepest * high) / 1e9


def _draw_points(
    axes: Axes, found: Mapping[str, Sequence[tuple[int, float, float]]], names: Iterable[str]
) -> None:
    """Draw the marks of `found` in the styles that all plots of a sweep of `names` share."""
    sizes = sorted({size for points in found.values() for size, *_ in points})
    area = dict(zip(sizes, np.linspace(SMALLEST, LARGEST, len(sizes)) ** 2, strict=True))
    for name, style in styles(names).items():
        points = found.get(name)
        if points is None:
            continue
        _, x, y = zip(*points, strict=True)
        style = {**style, "linewidth": style["linewidth"] or 1.0}
        face = style.pop("markerfacecolor") or style["color"]
        marker = style.pop("marker")
        del style["markersize"]
        axes.plot(x, y, alpha=0.4, **style)
        areas = [area[size] for size, *_ in points]
        axes.scatter(x, y, areas, marker=marker, facecolor=face, edgecolor=style["color"], zorder=3)
        axes.plot([], [], marker=marker, label=name, markerfacecolor=face, **style)
