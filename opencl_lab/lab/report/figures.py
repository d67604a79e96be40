"""The plots of a page: of sweeps, searches and two runs, drawn as for files."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.engine.speedups import ONE_WORKER, by_workers, over_ranks, with_base
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.presentation.drawing import (
    Target,
    legend_below,
    pale_grid,
    plain_scale,
    saved_figure,
)
from opencl_lab.lab.presentation.lines import WIDTH
from opencl_lab.lab.presentation.plots import (
    OPENCL,
    OTHER,
    plot_comparison,
    plot_efficiency,
    plot_ranks,
    plot_speedup,
    plot_throughput,
    plot_times,
)
from opencl_lab.lab.presentation.roofline_plot import no_roofline, plot_roofline
from opencl_lab.lab.report.documents import Sweep
from opencl_lab.lab.report.summary import by_speed, milliseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS, MOST_LINES = 30, 16
"""Limits of bars and lines in a plot that can be read; tables have all rows."""
PALE, GREEN = "#9aa7b1", "#2e9e5b"


@dataclass(frozen=True)
class Picture:
    """A plot as the address of an image, with all its data, and its caption."""

    address: str
    caption: str


def picture_of(caption: str, draw: Callable[[Target], None]) -> Picture:
    """Return what `draw` writes as an image."""
    written = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its fonts lack letters; browsers do not
        draw(written)
    text = base64.b64encode(written.getvalue()).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{text}", caption)


def figures_of(sweep: Sweep, peaks: Peaks | None = None) -> list[Picture]:
    """Draw a sweep; for a single problem, a bar for each implementation.

    The device's `peaks` are the ceilings of a roofline.
    """
    series, bases = with_base(sweep.series)
    rows = [row for _, items in series for row in items]
    if not any(row.total_ms and row.total_ms.max > 0 for row in rows):
        return []
    if not sweep.varied:
        timed = sorted((row for row in rows if row.total_ms is not None), key=milliseconds)
        remark = _remark(MOST_BARS, len(timed), "rows")
        bars = partial(plot_comparison, rows=timed[:MOST_BARS], title="")
        return [picture_of(f"Total time of a call{remark}", bars), *_of_ranks(rows, "")]
    names = by_speed(series)
    remark = _remark(MOST_LINES, len(names), "implementations")
    if remark:
        shown = set(names[:MOST_LINES])
        series = [(n, [row for row in x if row.implementation in shown]) for n, x in series]
    over: dict[str, Any] = {"series": series, "size_name": sweep.axis, "title": ""}
    times = partial(plot_times, **over, crossings=crossovers(series))
    drawn = [picture_of(f"Total time of a call; rings mark crossovers{remark}", times)]
    if any(row.speedup for row in rows):
        base = ", ".join(bases)
        gains = partial(plot_speedup, **over, baseline=base)
        drawn.append(picture_of(f"Speed-up over {base}{remark}", gains))
    if any(row.throughput for row in rows):
        rates = partial(plot_throughput, **over)
        drawn.append(picture_of(f"Throughput, by the total time{remark}", rates))
    if peaks is not None and not no_roofline(series, peaks):
        text = "Roofline: what the measured peaks of the device allow"
        drawn.append(picture_of(text + remark, partial(plot_roofline, **over, peaks=peaks)))
    size, last = series[-1]
    where = f"{sweep.axis} = {size:,}"
    return [*drawn, *_of_workers(last, where), *_of_ranks(last, f", {where}")]


def _remark(most: int, count: int, what: str) -> str:
    return f" (the {most} fastest of {count:,} {what})" if count > most else ""


def _of_workers(rows: Sequence[Measurement], where: str) -> list[Picture]:
    """Draw speed-up and efficiency by workers at one size, if a row has several workers."""
    series = by_workers(rows)
    over: dict[str, Any] = {"series": series, "size_name": "workers", "title": ""}
    return [
        picture_of(
            f"{name} by threads or ranks, {where}", partial(draw, **over, baseline=ONE_WORKER)
        )
        for name, draw in (("Speed-up", plot_speedup), ("Efficiency", plot_efficiency))
        if series
    ]


def _of_ranks(rows: Sequence[Measurement], where: str) -> list[Picture]:
    """Draw where the time of rows over ranks goes, if there are several."""
    found = over_ranks(rows)
    caption = f"Where the time goes{where}"
    return [picture_of(caption, partial(plot_ranks, rows=found, title=""))] * (len(found) > 1)


def figure_across(series: Series, axis: str) -> Picture:
    """Draw the fastest OpenCL row by size, with a line for each device and side of the data."""
    caption = "The fastest OpenCL algorithm on each device; dashed: with the data on the device"
    return picture_of(caption, partial(plot_times, series=series, size_name=axis, title=""))


@dataclass(frozen=True)
class Quotient:
    """A row of two runs: new over old time, and its range within the spread of both runs."""

    name: str
    ratio: float
    low: float
    high: float
    verdict: str


def plot_ratios(target: Target, rows: Sequence[Quotient]) -> None:
    """Draw new over old time of each row, with its spread."""
    colours = {"faster": GREEN, "slower": OPENCL, "within noise": PALE}

    def draw(axes: Axes) -> None:
        for label, colour in colours.items():
            for place, row in enumerate(reversed(rows)):
                if label == (row.verdict if row.verdict in colours else "within noise"):
                    ends = [[row.ratio - row.low], [row.high - row.ratio]]
                    axes.errorbar([row.ratio], [place], None, ends, fmt="o", color=colour)
            axes.plot([], [], "o", color=colour, label=label)
        axes.axvline(1, color="0.5", linewidth=1, linestyle="--")
        plain_scale(axes.xaxis)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set_xlabel("new time over old time; below 1: faster now")
        pale_grid(axes, "x")
        legend_below(axes)

    saved_figure(target, draw, WIDTH, 1.4 + 0.36 * len(rows))


def plot_search(target: Target, trials: Sequence[float | None], default: float | None) -> None:
    """Draw the kernel times of configurations in the order of the search, and the best so far.

    Those that failed have none; at least one has a time. `default` is the time of the built-in
    configuration.
    """
    timed = {place: time for place, time in enumerate(trials, 1) if time}
    failed = [place for place, time in enumerate(trials, 1) if not time]

    def draw(axes: Axes) -> None:
        axes.plot(*_xy(timed), "o", color=PALE, markersize=4, label="configuration")
        best = dict(zip(timed, accumulate(timed.values(), min), strict=True))
        best[len(trials) + 1] = min(timed.values())
        axes.plot(*_xy(best), color=OPENCL, drawstyle="steps-post", label="best so far")
        if failed:
            label, top = f"failed: {len(failed)}", axes.get_xaxis_transform()
            axes.plot(failed, [0.97] * len(failed), "x", color=OTHER, label=label, transform=top)
        if default is not None:
            axes.axhline(default, color=OTHER, linewidth=1, linestyle="--", label="built in")
        plain_scale(axes.yaxis)
        axes.set_xlabel("configurations in the order of the search")
        axes.set_ylabel("kernel time in ms")
        pale_grid(axes)
        legend_below(axes)

    saved_figure(target, draw, WIDTH, 5)


def _xy(points: Mapping[int, float]) -> tuple[list[int], list[float]]:
    return list(points), list(points.values())
