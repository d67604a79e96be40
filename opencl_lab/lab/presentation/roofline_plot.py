"""The roofline plot: measured rates, and the rates that the device's measured peaks allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
from opencl_lab.lab.presentation.plots import WIDTH, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM = 3.0  # factor by which the range of intensities exceeds the measured ones
ARITHMETIC = (("flops32", "FP32 peak", "-"), ("flops64", "FP64 peak", "--"))
TRAFFIC = (("cached_bytes", "within a cache", ":"), ("copy_bytes", "memory", "-."))


def no_roofline(series: Series, peaks: Peaks | None) -> str:
    """Return why no roofline can be drawn; empty if one can."""
    if not any(_place(row) for size, rows in series for row in rows if size):
        return "a roofline needs arithmetic, and no correct row has any"
    if peaks is None or not any(getattr(peaks, name) for name, *_ in ARITHMETIC + TRAFFIC):
        return "`oclab doctor` measures the device's peaks, which a roofline needs"
    return ""


def plot_roofline(target: Target, series: Series, size_name: str, title: str, peaks: Peaks) -> None:
    """Draw GFLOP/s by total time over flops per byte of the problem, both logarithmic.

    There is a mark for each size and implementation. The ceilings are the peaks that `oclab doctor`
    has measured: arithmetic, memory, caches.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for size, rows in series:
        for row in rows:
            if size and (place := _place(row)):
                found.setdefault(row.implementation, []).append(place)
    placed = [place for places in found.values() for place in places]

    def draw(axes: Axes) -> None:
        low, high = min(x for x, _ in placed) / ROOM, max(x for x, _ in placed) * ROOM
        _draw_ceilings(axes, peaks, low, high)
        looks = styles(row.implementation for _, rows in series for row in rows)
        for name, style in looks.items():
            if name in found:
                axes.plot(
                    *zip(*found[name], strict=True), label=name, **{**style, "linewidth": 0.5}
                )
        plain_scale(axes.yaxis)
        plain_scale(axes.xaxis)
        axes.set_xlim(low, high)
        axes.set_ylim(bottom=min(y for _, y in placed) / 2)
        axes.set_xlabel("arithmetic intensity of the problem in flops per byte")
        axes.set_ylabel(f"GFLOP/s by total time, for each {size_name}")
        pale_grid(axes)
        legend_below(axes)
        set_title(axes, title, WIDTH - 1)

    saved_figure(target, draw, WIDTH, 5)


def _place(row: Measurement) -> tuple[float, float] | None:
    """Return flops per byte and GFLOP/s of a correct row that has arithmetic, else None."""
    if not row.ok or not row.gflops or row.work is None or not row.work.bytes:
        return None
    return row.work.flops / row.work.bytes, row.gflops


def _draw_ceilings(axes: Axes, peaks: Peaks, low: float, high: float) -> None:
    """Draw the ceilings between two intensities, each as far as others leave it."""
    flat = [(rate, *how) for name, *how in ARITHMETIC if (rate := getattr(peaks, name))]
    slopes = [(rate, *how) for name, *how in TRAFFIC if (rate := getattr(peaks, name))]
    most = max((rate for rate, *_ in flat), default=math.inf)
    steepest = max((rate for rate, *_ in slopes), default=math.inf)
    for rate, label, line in flat:
        ends = [min(max(low, rate / steepest), high), high]
        text = f"{label}: {rate_text(rate, 'FLOP/s')}"
        axes.plot(ends, [rate / 1e9] * 2, color="0.4", label=text, linestyle=line)
    for rate, label, line in slopes:
        ends = [low, max(min(high, most / rate), low)]
        text = f"{label}: {rate_text(rate, 'B/s')}"
        axes.plot(ends, [rate * x / 1e9 for x in ends], color="0.4", label=text, linestyle=line)
