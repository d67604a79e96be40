"""Plots of comparisons and sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opencl_lab.core.wording import counted, plain
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.engine.speedups import ONE_WORKER, by_workers, over_ranks, with_base
from opencl_lab.lab.measuring.roofline import Peaks, rate_text
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.operation import Curves
from opencl_lab.lab.presentation.drawing import (
    Target,
    legend_below,
    pale_grid,
    plain_number,
    plain_scale,
    saved_figure,
    set_title,
    written_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0  # inches, of a plot over sizes
MOST_MARKS = 64  # sizes; with more, lines have no marks
MARKERS = "os^Dv*<>pPX"
OPENCL, OTHER = "#c0392b", "#5d6d7e"

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


def plot_comparison(
    target: Target,
    rows: Sequence[Measurement],
    title: str,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw the total time of each implementation as a bar, with its spread and speed-up.

    `pictures` are images by their titles, shown above the bars.
    """
    [(_, rows)], bases = with_base([(0, rows)])
    over = f"\nx: speed-up over {', '.join(bases)}" if bases else ""
    measured = [(row.total_ms, row) for row in rows if row.total_ms is not None]
    measured.sort(key=lambda item: item[0].median, reverse=True)

    def draw(axes: Axes) -> None:
        for position, (times, row) in enumerate(measured):
            spread = [[times.median - times.min], [times.max - times.median]]
            axes.barh(
                position,
                times.median,
                xerr=spread,
                color=OPENCL if row.kind == "opencl" else OTHER,
                error_kw={"elinewidth": 1, "capsize": 2},
            )
            speedup = "" if row.speedup is None else f", {plain(row.speedup)}x"
            verdict = "" if row.ok else f"  {row.status}"
            axes.annotate(
                f"{plain(times.median)} ms{speedup}{verdict}", (1, position),
                xycoords=("axes fraction", "data"), va="center", fontsize=8,
            )  # fmt: skip
        axes.set_yticks(range(len(measured)), [row.implementation for _, row in measured])
        axes.set_xlabel(f"total time of a call in ms\n(median, min and max){over}")
        axes.set_xlim(0, 1.05 * max((times.max for times, _ in measured), default=1))
        axes.spines[["top", "right"]].set_visible(False)
        set_title(axes, title, 6.2)

    saved_figure(target, draw, 8, 1.2 + 0.4 * max(len(measured), 1), pictures)


def plot_curves(target: Target, curves: Curves, title: str) -> None:
    """Draw the curves of a result in separate panels with common axes."""
    count = max(len(curves.values), 1)
    with written_figure(target, 8, 3.0 + 1.5 * count) as figure:
        panels = figure.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (name, values) in zip(panels, curves.values.items(), strict=False):
            axes.plot(curves.points, values, linewidth=0.8)
            pale_grid(axes)
            if count > 1:
                axes.set_ylabel(name)
        panels[-1].set_xlabel(curves.x_label)
        figure.supylabel(curves.y_label, fontsize="medium")
        set_title(panels[0], title, 7)


def plot_times(target: Target, series: Series, size_name: str, title: str) -> None:
    """Draw total time over size, both logarithmic, with a line for each implementation."""
    _plot(target, series, size_name, title, total, "total time in ms\n(median, min and max)")


def plot_throughput(target: Target, series: Series, size_name: str, title: str) -> None:
    """Draw throughput over size, as `plot_times` does."""
    from matplotlib.ticker import EngFormatter

    units = (row.throughput_unit for _, rows in series for row in rows)
    label = f"{next(filter(None, units), '')}\n(by total time; median, min and max)"
    _plot(target, series, size_name, title, lambda row: row.throughput, label, write=EngFormatter())


def plot_speedup(target: Target, series: Series, size_name: str, baseline: str, title: str) -> None:
    """Draw the speed-up over the baseline by size."""
    label = f"speed-up over {baseline}\n(total time; median, min and max)"
    _plot(target, series, size_name, title, lambda row: row.speedup, label, even=True, unit="x")


def share_of_worker(row: Measurement) -> float | None:
    """Return the efficiency of an OpenCL row, or of several threads or ranks; else None."""
    return row.efficiency if row.kind == "opencl" or row.workers > 1 else None


def _with_workers(rows: Sequence[Measurement]) -> str:
    """Return the name of a line, with the numbers of workers: small calls may take one."""
    unit = {"opencl": "compute unit", "mpi": "rank"}.get(rows[0].kind, "thread")
    *fewer, most = sorted({row.workers for row in rows})
    counts = f"{fewer[0]} to {counted(most, unit)}" if fewer else counted(most, unit)
    return f"{rows[0].implementation} ({counts})"


def plot_efficiency(
    target: Target, series: Series, size_name: str, baseline: str, title: str
) -> None:
    """Draw the efficiency by size: the speed-up over the baseline, per worker."""
    label = f"efficiency: speed-up over\n{baseline}, per worker"
    _plot(target, series, size_name, title, share_of_worker, label, even=True, named=_with_workers)


PHASES = {"compute": OPENCL, "communication": OTHER, "waiting": "0.8"}


def plot_ranks(target: Target, rows: Sequence[Measurement], title: str) -> None:
    """Draw a bar for each number of ranks: the median time in its shares."""

    def draw(axes: Axes) -> None:
        places = range(len(rows))
        times = [row.total_ms or Times.of([0.0]) for row in rows]
        below = [0.0] * len(rows)
        for name, colour in PHASES.items():
            parts = [
                time.median * getattr(row.over_ranks, name, 0.0)
                for time, row in zip(times, rows, strict=True)
            ]
            axes.bar(places, parts, 0.5, bottom=below, color=colour, label=name)
            below = [start + part for start, part in zip(below, parts, strict=True)]
        spread = [[x.median - x.min for x in times], [x.max - x.median for x in times]]
        medians = [time.median for time in times]
        axes.errorbar(places, medians, spread, fmt="none", ecolor="0.3", elinewidth=1, capsize=3)
        axes.set_xticks(places, [counted(row.workers, "rank") for row in rows])
        axes.set_ylabel("total time in ms\n(median, min and max)")
        pale_grid(axes, "y")
        legend_below(axes)
        set_title(axes, title, 6.2)

    saved_figure(target, draw, 7, 4)


def _plot(
    target: Target,
    series: Series,
    size_name: str,
    title: str,
    value: Value,
    label: str,
    *,
    even: bool = False,
    unit: str = "",
    write: Callable[[float], str] = plain_number,
    named: Callable[[Sequence[Measurement]], str] | None = None,
) -> None:
    """Draw a value of the rows over size.

    `even` adds a line at 1. `write` formats numbers of the y axis, and `named` returns the name of
    the line of some rows.
    """

    def draw(axes: Axes) -> None:
        draw_lines(axes, series, value, named)
        if axes.lines:
            plain_scale(axes.yaxis, unit, write)
        if even:
            axes.axhline(1, color="0.5", linewidth=1, linestyle="--")
        axes.set(xlabel=size_name, ylabel=label)
        legend_below(axes)
        set_title(axes, title, WIDTH - 1)

    saved_figure(target, draw, WIDTH, 5)


# ------------------------------------------------------------------------------------ rooflines

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


# ------------------------------------------------------------------------- the plots of a sweep


class Plot(NamedTuple):
    """A plot of a sweep: what it is called in names of files, what it shows, and how it is drawn.

    ``draw(target, title=...)`` writes it.
    """

    kind: str
    caption: str
    draw: Callable[..., None]


def plots_of_sizes(series: Series, axis: str, peaks: Peaks | None = None) -> Iterator[Plot]:
    """Yield the plots of rows over sizes; a roofline, if there are the `peaks` of the device."""
    given, (series, bases) = series, with_base(series)
    rows = [row for _, items in series for row in items]
    over_workers = [row for _, items in given for row in items if share_of_worker(row)]
    over: dict[str, Any] = {"series": series, "size_name": axis}
    yield Plot("time", "Total time of a call", partial(plot_times, **over))
    if any(row.speedup for row in rows):
        base = ", ".join(bases)
        draw = partial(plot_speedup, **over, baseline=base)
        yield Plot("speedup", f"Speed-up over {base}", draw)
    if over_workers:
        base = ", ".join(dict.fromkeys(row.baseline for row in over_workers))
        draw = partial(plot_efficiency, series=given, size_name=axis, baseline=base)
        yield Plot("efficiency", f"Efficiency: speed-up over {base}, per worker", draw)
    if any(row.throughput for row in rows):
        text = "Throughput, by the total time"
        yield Plot("throughput", text, partial(plot_throughput, **over))
    if peaks is not None and not no_roofline(series, peaks):
        text = "Roofline: what the measured peaks of the device allow"
        yield Plot("roofline", text, partial(plot_roofline, **over, peaks=peaks))


def plots_of_workers(rows: Sequence[Measurement]) -> Iterator[Plot]:
    """Yield the plots of rows of one problem over threads or ranks, if there are several."""
    if series := by_workers(rows):
        over: dict[str, Any] = {"series": series, "size_name": "workers", "baseline": ONE_WORKER}
        by = "by threads or ranks"
        yield Plot("workers", f"Speed-up {by}", partial(plot_speedup, **over))
        yield Plot("efficiency", f"Efficiency {by}", partial(plot_efficiency, **over))
    if len(found := over_ranks(rows)) > 1:
        yield Plot("ranks", "Where the time goes", partial(plot_ranks, rows=found))
