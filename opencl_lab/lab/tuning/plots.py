"""Plots of a search: its convergence, and the effect of each parameter."""

from __future__ import annotations

import math
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencl_lab.core.space import Value
from opencl_lab.lab.presentation.drawing import (
    check_plot,
    legend_below,
    pale_grid,
    plain_scale,
    set_title,
    written_figure,
)
from opencl_lab.lab.presentation.plots import OPENCL, OTHER
from opencl_lab.lab.tuning.result import TuneResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
PALE = "#b8c1c9"
JITTER, STEP = 0.28, 0.06


def plot_tuning(path: Path, result: TuneResult, title: str) -> None:
    """Draw the convergence, and below it the times by value for each parameter."""
    check_plot(path)
    names = [name for name in result.task.algorithm.space.names if _values(result, name)[1:]]
    rows = math.ceil(len(names) / COLUMNS)
    with written_figure(path, 11, 3.4 + 2.3 * rows) as figure:
        grid = figure.add_gridspec(1 + rows, COLUMNS, height_ratios=[3, *[2.2] * rows])
        convergence = figure.add_subplot(grid[0, :])
        _draw_convergence(convergence, result)
        set_title(convergence, title, 10)
        first = None
        for index, name in enumerate(names):
            place = grid[1 + index // COLUMNS, index % COLUMNS]
            axes = figure.add_subplot(place, sharey=first)
            first = first or axes
            _draw_parameter(axes, result, name)
            if index % COLUMNS == 0:
                axes.set_ylabel("kernel time, ms", fontsize=8)
            else:
                axes.tick_params(which="both", labelleft=False)
        if names:
            text = "by parameter: all evaluations, and the best of each value as a bar"
            figure.supxlabel(text, fontsize=8)


def _draw_convergence(axes: Axes, result: TuneResult) -> None:
    """Draw each evaluation as a point and the best so far as a step line, failures at the top.

    Lines show times of the search. The finals, which decide, follow on the right, since the
    machine may be faster or slower by then.
    """
    from matplotlib.ticker import MaxNLocator

    evaluations = result.evaluations
    numbers = range(1, len(evaluations) + 1)
    times = [item.time_ms for item in evaluations]
    best = list(accumulate(times, min))
    right = [(n, t) for n, t in zip(numbers, times, strict=True) if math.isfinite(t)]
    if right:
        axes.plot(*zip(*right, strict=True), "o", color=PALE, markersize=3, label="evaluation")
        runs = [(min(item.times_ms), max(item.times_ms)) for item in evaluations if item.times_ms]
        axes.vlines([n for n, _ in right], *zip(*runs, strict=True), color=PALE, linewidth=0.8)
    points = [(float(n), t) for n, t in zip(numbers, best, strict=True) if math.isfinite(t)]
    if points:
        points.append((len(evaluations) + 0.5, points[-1][1]))
        line = zip(*points, strict=True)
        axes.plot(*line, color=OPENCL, linewidth=2, drawstyle="steps-post", label="best so far")
    failed = [n for n, t in zip(numbers, times, strict=True) if not math.isfinite(t)]
    if failed:
        top = axes.get_xaxis_transform()
        label = f"failed: {len(failed)}"
        axes.plot(failed, [0.97] * len(failed), "x", color=OTHER, transform=top, label=label)
    default = None if result.default is None else result.default.config
    name = f"{result.task.operation.default_name} configuration"
    searched = next((item.time_ms for item in evaluations if item.config == default), math.inf)
    if math.isfinite(searched):
        style: dict[str, Any] = {"color": OTHER, "linewidth": 1, "linestyle": "--"}
        axes.axhline(searched, label=f"{name}, in the search", **style)
    _style(axes)
    end = _draw_finals(axes, result, name)
    axes.set_xlim(0.5, end + 0.5)
    ticks = MaxNLocator(integer=True).tick_values(1, max(len(evaluations), 2))
    axes.set_xticks([int(tick) for tick in ticks if 1 <= tick <= len(evaluations)])
    axes.set_xlabel("evaluations" + (", then the finals" if result.finalists else ""))
    axes.set_ylabel("kernel time, ms\n(median, min and max)")
    legend_below(axes)


def _draw_finals(axes: Axes, result: TuneResult, default_name: str) -> float:
    """Draw medians and ranges of the finals, the fastest first, and return where they end."""
    end = float(len(result.evaluations))
    if not result.finalists:
        return end
    step = max(1.0, end / 40)
    axes.axvline(end + 0.5 * step, color="0.6", linewidth=0.8, linestyle=":")
    named: set[str] = set()
    for item in result.finalists:
        end += step
        color, label = PALE, "others in the finals"
        if result.default is not None and item.config == result.default.config:
            color, label = OTHER, f"{default_name} in the finals"
        if result.best is not None and item.config == result.best.config:
            color, label = OPENCL, "winner in the finals"
        axes.vlines(end, min(item.times_ms), max(item.times_ms), color=color, linewidth=0.8)
        # Legends of matplotlib leave out labels that begin with _.
        shown = f"_{label}" if label in named else label
        axes.plot([end], [item.time_ms], "D", color=color, markersize=4, label=shown)
        named.add(label)
    return end


def _values(result: TuneResult, name: str) -> list[Value]:
    """Return the values of a parameter with a correct evaluation, in order."""
    found = {item.config[name] for item in result.evaluations if item.times_ms}
    return sorted(found, key=lambda value: (isinstance(value, str), value))


def _draw_parameter(axes: Axes, result: TuneResult, name: str) -> None:
    """Draw all times by value of one parameter, and the best of each value."""
    values = _values(result, name)
    best = []
    for place, value in enumerate(values):
        with_value = (item for item in result.evaluations if item.config[name] == value)
        times = [item.time_ms for item in with_value if item.times_ms]
        # Spread sideways in the order of the search, so that points do not hide each other.
        step = min(STEP, 2 * JITTER / len(times))
        places = [place + step * (index - (len(times) - 1) / 2) for index in range(len(times))]
        axes.plot(places, times, ".", color=PALE, markersize=4)
        best.append(min(times))
    # Not joined by a line, since many values have no order.
    axes.plot(range(len(values)), best, "_", color=OPENCL, markersize=20, markeredgewidth=2)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.tick_params(labelsize=7)
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.set_title(name, fontsize=9, loc="left")
    _style(axes)


def _style(axes: Axes) -> None:
    plain_scale(axes.yaxis)
    pale_grid(axes, "y")
