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
            convergence.plot([], [], " ", label="bars: the best of each value")
        legend_below(convergence)


def _draw_convergence(axes: Axes, result: TuneResult) -> None:
    """Draw each evaluation as a point and the best so far as a step line, failures at the top.

    All are times of the search, since the machine may be faster or slower in the finals.
    """
    from matplotlib.ticker import MaxNLocator

    evaluations = result.evaluations
    times = [item.time_ms for item in evaluations]
    right = [(n, t) for n, t in enumerate(times, 1) if math.isfinite(t)]
    if right:
        axes.plot(*zip(*right, strict=True), "o", color=PALE, markersize=3, label="evaluation")
        best = [(n, t) for n, t in enumerate(accumulate(times, min), 1) if math.isfinite(t)]
        style: dict[str, Any] = {"drawstyle": "steps-post", "color": OPENCL, "linewidth": 2}
        axes.plot(*zip(*best, strict=True), label="best so far", **style)
    failed = [n for n, t in enumerate(times, 1) if not math.isfinite(t)]
    if failed:
        top = axes.get_xaxis_transform()
        label = f"failed: {len(failed)}"
        axes.plot(failed, [0.97] * len(failed), "x", color=OTHER, transform=top, label=label)
    default = None if result.default is None else result.default.config
    searched = next((item.time_ms for item in evaluations if item.config == default), math.inf)
    if math.isfinite(searched):
        label = f"{result.task.operation.default_name} configuration"
        axes.axhline(searched, label=label, color=OTHER, linewidth=1, linestyle="--")
    _style(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("evaluations")
    axes.set_ylabel("kernel time, ms\n(median)")


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
