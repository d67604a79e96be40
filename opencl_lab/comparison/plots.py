"""Plots of comparisons and sweeps, written to files. Matplotlib is imported only here."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.sweep import Crossover
from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Curves
from opencl_lab.paths import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["check_plot", "plot_comparison", "plot_curves", "plot_speedup", "plot_times"]

FORMATS = (".png", ".svg", ".pdf", ".jpg")
PICTURE_HEIGHT = 2.6  # inches
TITLE_WIDTH = 85  # characters
OPENCL, OTHER = "#c0392b", "#5d6d7e"
MARKERS = "os^Dv*<>pPX"


def check_plot(path: Path) -> None:
    """Check early that a plot can be written to `path`.

    Raises
    ------
    InvalidProblem
        If its format is unknown or its folder does not exist.
    """
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot plot to {path}: its name must end in {' '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InvalidProblem(f"cannot plot to {path}: the folder {path.parent} does not exist")


def _figure(
    path: Path,
    draw: Callable[[Axes], None],
    width: float,
    height: float,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw one diagram, below a row of pictures if there are any."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    check_plot(path)
    figure: Figure = NewFigure(figsize=(width, height), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    if pictures:
        ratios = PICTURE_HEIGHT, height
        above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=ratios)[:, 0]
        figure.set_figheight(height + PICTURE_HEIGHT)
        _draw_pictures(above, pictures)
        draw(below.add_subplot())
    else:
        draw(figure.add_subplot())
    try:
        with replace_file(path) as temporary:
            figure.savefig(temporary)
    except OSError as error:
        raise InvalidProblem(f"cannot write {path}: {error.strerror or error}") from error


def _draw_pictures(figure: SubFigure, pictures: Mapping[str, Any]) -> None:
    """Show images beside each other: colours as they are, numbers with a scale from 0."""
    panels = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axes, (name, image) in zip(panels, pictures.items(), strict=True):
        image = image.astype(float)
        low, high = min(0.0, np.nanmin(image)), np.nanmax(image)
        axes.set_title(name, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        if image.ndim == 3:
            scale = max(255.0 if high > 1 else 1.0, high)
            axes.imshow(np.nan_to_num(np.abs(image[..., :3]) / scale).clip(0, 1))
        else:
            high = high if high > low else low + 1  # a scale has a length
            shown = axes.imshow(image, cmap="gray", vmin=low, vmax=high)
            figure.colorbar(shown, ax=axes, shrink=0.7).ax.tick_params(labelsize=6)


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
            axes.barh(
                position,
                times.median,
                xerr=spread,
                color=OPENCL if row.kind == "opencl" else OTHER,
                error_kw={"elinewidth": 1, "capsize": 2},
            )
            speedup = "" if row.speedup is None else f", {row.speedup:.2f}x"
            verdict = "" if row.ok else f"  {row.status}"
            axes.annotate(
                f" {times.median:.3g} ms{speedup}{verdict}",
                (times.max, position),
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(measured)), [row.implementation for row in measured])
        axes.set_xlabel("total time in ms, from host array to host array (median, min and max)")
        axes.set_xlim(0, 1.3 * max((r.total_ms.max for r in measured if r.total_ms), default=1))
        axes.spines[["top", "right"]].set_visible(False)
        wrapped = (textwrap.fill(line, TITLE_WIDTH) for line in title.splitlines())
        axes.set_title("\n".join(wrapped), loc="left", fontsize=10)

    _figure(path, draw, 8, 1.2 + 0.4 * max(len(measured), 1), pictures)


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
            axes.legend(fontsize=8, frameon=False)
        axes.set_title(title, loc="left", fontsize=10)

    _figure(path, draw, 8, 4.5)


Series = Sequence[tuple[int, Sequence[Measurement]]]
"""Size and the rows measured at it."""


def _lines(axes: Axes, series: Series, value: Callable[[Measurement], float | None]) -> None:
    """Draw one line an implementation, bold for OpenCL; a size of 0 has no logarithm."""
    names = list(dict.fromkeys(row.implementation for _, rows in series for row in rows))
    for index, name in enumerate(names):
        points = [
            (size, value(row))
            for size, rows in series
            for row in rows
            if size > 0 and row.implementation == name and row.ok and value(row) is not None
        ]
        if not points:
            continue
        style: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)], "markersize": 4}
        if name.startswith("opencl:"):
            style["linewidth"] = 2.2
        axes.plot(*zip(*points, strict=True), label=name, **style)
    axes.set_xscale("log")
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(fontsize=8, frameon=False)


def _total(row: Measurement) -> float | None:
    return row.total_ms.median if row.total_ms else None


def _rings(axes: Axes, series: Series, crossings: Sequence[Crossover]) -> None:
    """Mark where lines cross beyond noise, with the size there if both are algorithms of ours."""
    smallest = series[0][0]
    for crossing in crossings:
        if crossing.size is None or crossing.level or crossing.size <= max(smallest, 0):
            continue
        points = {
            size: total
            for size, rows in series
            for row in rows
            if size > 0 and row.ok and row.implementation == crossing.implementation
            if (total := _total(row))
        }
        logarithms = np.log(list(points)), np.log(list(points.values()))
        time = math.exp(float(np.interp(math.log(crossing.size), *logarithms)))
        both = crossing.reference.startswith("opencl:")
        axes.plot(crossing.size, time, "o", color="0.2", fillstyle="none", markersize=11 - 4 * both)
        if both:
            axes.axvline(crossing.size, color="0.6", linewidth=0.8, linestyle=":")
            axes.annotate(
                f"{crossing.implementation} from {crossing.size_text}",
                (crossing.size, 0.02),
                xycoords=("data", "axes fraction"),
                rotation=90,
                ha="right",
                va="bottom",
                fontsize=7,
            )


def plot_times(
    path: Path, series: Series, size_name: str, title: str, crossings: Sequence[Crossover] = ()
) -> None:
    """Draw total time against size, both logarithmic, one line an implementation.

    Where one becomes faster for good than another, `crossings`, is a ring.
    """

    def draw(axes: Axes) -> None:
        _lines(axes, series, _total)
        _rings(axes, series, crossings)
        axes.set_yscale("log")
        axes.set_xlabel(size_name)
        axes.set_ylabel("total time in ms (median)")
        axes.set_title(title, loc="left", fontsize=10)

    _figure(path, draw, 7.5, 5)


def plot_speedup(path: Path, series: Series, size_name: str, baseline: str, title: str) -> None:
    """Draw the speed-up over the baseline against size."""

    def draw(axes: Axes) -> None:
        _lines(axes, series, lambda row: row.speedup)
        axes.axhline(1, color="0.5", linewidth=1, linestyle="--")
        if axes.lines[:-1]:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
        axes.set_xlabel(size_name)
        axes.set_ylabel(f"speed-up over {baseline} (total time)")
        axes.set_title(title, loc="left", fontsize=10)

    _figure(path, draw, 7.5, 5)
