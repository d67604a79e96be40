"""The plots of a sweep: times, speed-up, throughput, roofline, workers; bars for one problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.roofline import Peaks, share_text
from opencl_lab.lab.presentation.lines import Series, group_name
from opencl_lab.lab.presentation.plots import (
    plot_comparison,
    plot_ranks,
    plot_speedup,
    plot_throughput,
    plot_times,
)
from opencl_lab.lab.presentation.roofline_plot import no_roofline, plot_roofline
from opencl_lab.lab.presentation.speedups import ONE_WORKER, by_workers, with_base
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.report.plots import plot_efficiency_by_workers
from opencl_lab.lab.report.summary import by_speed, milliseconds
from opencl_lab.lab.report.svg import Figure, figure_of
from opencl_lab.lab.report.sweeps import Sweep
from opencl_lab.lab.studies.over_ranks import over_ranks

MOST_BARS, MOST_LINES, MOST_SIZES = 30, 16, 48
"""Limits of bars, lines and sizes in a plot, for readable plots and fast pages; tables have all
rows."""
Drawing = tuple[str, str, Callable[[Path], None]]
"""Suffix of its HTML names, caption, and function that draws it."""


def figures_of(sweep: Sweep, prefix: str, peaks: Peaks | None = None) -> list[Figure]:
    """Draw a sweep; for a single problem, a bar for each implementation.

    Names within the SVG begin with `prefix`, which must be unique in the page. The device's `peaks`
    are the ceilings of a roofline.
    """
    series, bases = with_base(sweep.series)
    rows = [row for _, items in series for row in items]
    if not any(row.total_ms and row.total_ms.max > 0 for row in rows):
        return []
    if not sweep.varied:
        shown, remark = fastest_rows(rows)
        draw = partial(plot_comparison, rows=shown, title="")
        caption = _caption("Total time of a call", remark)
        bars = figure_of(draw, f"{prefix}-bars", tips_of(series), caption)
        return [bars, *_ranks_figures(rows, "", prefix)]
    kept, remark = thinned(series)
    tips = tips_of(kept, sweep.axis)
    found = [
        figure_of(draw, f"{prefix}-{name}", tips, _caption(text, remark))
        for name, text, draw in _over_sizes(sweep, kept, ", ".join(bases), peaks)
    ]
    size, last = series[-1]
    found += _workers_figures((size, last), sweep.axis, prefix)
    return found + _ranks_figures(last, f", {sweep.axis} = {size:,}", prefix)


def _caption(text: str, remark: str) -> str:
    return f"{text} ({remark})" if remark else text


def _over_sizes(sweep: Sweep, series: Series, base: str, peaks: Peaks | None) -> list[Drawing]:
    """Return the plots over sizes for which the rows have values."""
    rows = [row for _, items in series for row in items]
    over: dict[str, Any] = {"series": series, "size_name": sweep.axis, "title": ""}
    text = "Total time of a call; rings mark crossovers"
    drawings: list[Drawing] = [
        ("time", text, partial(plot_times, **over, crossings=crossovers(series)))
    ]
    if any(row.speedup for row in rows):
        draw = partial(plot_speedup, **over, baseline=base)
        drawings.append(("speedup", f"Speed-up over {base}", draw))
    if any(row.throughput for row in rows):
        text = "Throughput, by the total time"
        drawings.append(("throughput", text, partial(plot_throughput, **over)))
    if peaks is not None and not no_roofline(series, peaks):
        text = "Roofline: what the measured peaks of the device allow"
        drawings.append(("roofline", text, partial(plot_roofline, **over, peaks=peaks)))
    return drawings


def _workers_figures(
    last: tuple[int, Sequence[Measurement]], axis: str, prefix: str
) -> list[Figure]:
    """Draw speed-up and efficiency by workers at one size, if a row has several workers."""
    size, rows = last
    series = by_workers(rows)
    if not series:
        return []
    where = f"by threads or ranks, {axis} = {size:,}"
    draw = partial(plot_speedup, series=series, size_name="workers", baseline=ONE_WORKER, title="")
    tips = tips_of(series, "workers", ONE_WORKER)
    speedups = figure_of(draw, f"{prefix}-workers", tips, f"Speed-up {where}")
    lines: dict[str, list[tuple[int, float]]] = {}
    shares: dict[str, str] = {}
    for workers, items in series:
        for row in items:
            share = row.efficiency or 0.0
            lines.setdefault(row.implementation, []).append((workers, share))
            text = f"{row.implementation}, workers = {workers}: efficiency {100 * share:.0f} %"
            shares[group_name(row.implementation, (workers,))] = text
    draw_shares = partial(plot_efficiency_by_workers, efficiencies=lines)
    return [
        speedups,
        figure_of(draw_shares, f"{prefix}-efficiency", shares, f"Efficiency {where}"),
    ]


def _ranks_figures(rows: Sequence[Measurement], where: str, prefix: str) -> list[Figure]:
    """Draw where the time of rows over ranks goes, and the model, if there are several."""
    found = over_ranks(rows)
    draw = partial(plot_ranks, rows=found, title="")
    caption = f"Where the time goes, and the time of the model{where}"
    return [figure_of(draw, f"{prefix}-ranks", {}, caption)] if len(found) > 1 else []


def tips_of(series: Series, axis: str = "", baseline: str = "") -> dict[str, str]:
    """Return the tooltips of marks and bars, by implementation and size.

    `baseline` names the baseline of speed-ups; by default that of each row.
    """
    found = {}
    for size, rows in series:
        for row in rows:
            if row.total_ms is not None:
                where = f", {axis} = {size:,}" if axis else ""
                name = group_name(row.implementation, (size,) if axis else ())
                found[name] = f"{row.implementation}{where}: {_facts(row, baseline)}"
    return found


def _facts(row: Measurement, baseline: str) -> str:
    times = row.total_ms
    assert times is not None  # only timed rows have marks
    text = f"{number(times.median)} ms"
    text += f" ({number(times.min, 3)} to {number(times.max, 3)}, {times.runs} runs)"
    if row.speedup is not None:
        text += f", {number(row.speedup, 3)} times {baseline or row.baseline}"
    if row.throughput is not None:
        text += f", {number(row.throughput, 3)} {row.throughput_unit}"
    if row.peak is not None:
        text += f", kernels at {share_text(row.peak)} % of the peak"
    return text


def thinned(series: Series) -> tuple[Series, str]:
    """Return a sweep with at most as much as a plot can show, and a remark about what that is.

    Sizes are in ascending order; those kept are spread evenly on a logarithmic axis, and include
    the first and the last. The implementations are the fastest ones at their largest sizes.
    """
    names = by_speed(series)
    sizes = _spread([size for size, _ in series])
    remarks = []
    if len(sizes) < len(series):
        remarks.append(f"{len(sizes)} of {len(series):,} sizes")
    if len(names) > MOST_LINES:
        remarks.append(f"the {MOST_LINES} fastest of {len(names):,} implementations")
    if not remarks:
        return series, ""
    shown_names, kept = set(names[:MOST_LINES]), set(sizes)
    shown = [
        (size, [row for row in rows if row.implementation in shown_names])
        for size, rows in series
        if size in kept
    ]
    return shown, " and ".join(remarks)


def _spread(sizes: Sequence[int]) -> list[int]:
    """Return at most `MOST_SIZES` sizes, evenly spread on a logarithmic axis."""
    if len(sizes) <= MOST_SIZES:
        return list(sizes)
    low, high = math.log(max(sizes[0], 1)), math.log(sizes[-1])
    kept: dict[int, int] = {}
    for size in sizes:
        share = (math.log(max(size, 1)) - low) / (high - low)
        kept[round(share * (MOST_SIZES - 2))] = size  # the largest one at each place
    return sorted({sizes[0], *kept.values()})


def fastest_rows(rows: Sequence[Measurement]) -> tuple[list[Measurement], str]:
    """Return the fastest rows, at most as many as a plot has bars, and a remark about the rest."""
    timed = [row for row in rows if row.total_ms is not None]
    timed.sort(key=milliseconds)
    remark = f"the {MOST_BARS} fastest of {len(timed):,} rows" if len(timed) > MOST_BARS else ""
    return timed[:MOST_BARS], remark
