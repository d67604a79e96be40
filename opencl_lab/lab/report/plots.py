"""Plots of pages only: efficiency by workers, changes between two runs, searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from opencl_lab.lab.presentation.drawing import (
    legend_below,
    pale_grid,
    plain_scale,
    saved_figure,
    size_scale,
)
from opencl_lab.lab.presentation.lines import group_name
from opencl_lab.lab.presentation.plots import OPENCL, OTHER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 9.0, 5.0  # inches
PALE = "#9aa7b1"
GREEN = "#2e9e5b"


@dataclass(frozen=True)
class Ratio:
    """A row of two runs: new over old time, and its range within the spread of both runs."""

    name: str
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class SearchPoint:
    """A configuration of a search: its description, and its time in ms; None if it failed."""

    text: str
    milliseconds: float | None


def plot_efficiency_by_workers(
    path: Path, efficiencies: Mapping[str, Sequence[tuple[int, float]]]
) -> None:
    """Draw the efficiency over the number of workers, with a line for each implementation."""

    def draw(axes: Axes) -> None:
        for name, points in efficiencies.items():
            workers, shares = zip(*points, strict=True)
            axes.plot(workers, shares, "o-", label=name, gid=group_name(name, workers))
        axes.axhline(1, color="0.5", linewidth=1, linestyle="--")
        counts = sorted({count for points in efficiencies.values() for count, _ in points})
        size_scale(axes, counts)
        highest = max(share for points in efficiencies.values() for _, share in points)
        axes.set_ylim(0, 1.1 * max(1.0, highest))
        axes.set_xlabel("workers")
        axes.set_ylabel("efficiency: speed-up over one worker, per worker")
        pale_grid(axes)
        legend_below(axes)

    saved_figure(path, draw, WIDTH, HEIGHT)


def plot_ratios(path: Path, rows: Sequence[Ratio]) -> None:
    """Draw new over old time of each row, with its spread."""
    colours = {"faster": GREEN, "slower": OPENCL}

    def draw(axes: Axes) -> None:
        named: set[str] = set()
        for place, row in enumerate(rows):
            position = len(rows) - 1 - place
            label = row.verdict if row.verdict in colours else "within noise"
            colour = colours.get(row.verdict, PALE)
            axes.hlines(position, row.low, row.high, color=colour, linewidth=2)
            axes.plot(
                [row.ratio], [position], "o", color=colour, gid=group_name(str(place), [0]),
                label=label if label not in named else f"_{label}",
            )  # fmt: skip
            named.add(label)
        axes.axvline(1, color="0.5", linewidth=1, linestyle="--")
        plain_scale(axes.xaxis)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set_xlabel("new time over old time; below 1: faster now")
        pale_grid(axes, "x")
        legend_below(axes)

    saved_figure(path, draw, WIDTH, 1.4 + 0.36 * len(rows))


def plot_search(path: Path, trials: Sequence[SearchPoint], default: float | None) -> None:
    """Draw the kernel time of each configuration in the order of the search, and the best so far.

    At least one has a time. `default` is the time of the built-in configuration in ms.
    """
    numbers = range(1, len(trials) + 1)
    timed = [(n, t.milliseconds) for n, t in zip(numbers, trials, strict=True) if t.milliseconds]
    failed = [n for n, trial in zip(numbers, trials, strict=True) if not trial.milliseconds]

    def draw(axes: Axes) -> None:
        places, times = zip(*timed, strict=True)
        group = group_name("trial", places)
        axes.plot(places, times, "o", color=PALE, markersize=4, label="configuration", gid=group)
        best = list(accumulate(times, min))
        axes.plot(
            [*places, len(trials) + 0.5], [*best, best[-1]],
            color=OPENCL, linewidth=2, drawstyle="steps-post", label="best so far",
        )  # fmt: skip
        if failed:
            axes.plot(
                failed, [0.97] * len(failed), "x", color=OTHER, label=f"failed: {len(failed)}",
                transform=axes.get_xaxis_transform(), gid=group_name("trial", failed),
            )  # fmt: skip
        if default is not None:
            axes.axhline(default, color=OTHER, linewidth=1, linestyle="--", label="built in")
        plain_scale(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("configurations in the order of the search")
        axes.set_ylabel("kernel time in ms")
        pale_grid(axes)
        legend_below(axes)

    saved_figure(path, draw, WIDTH, HEIGHT)
