"""What all plots share: files, titles, scales, legends."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.paths import check_target, write_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.transforms import Bbox

__all__ = [
    "ASIDE",
    "check_plot",
    "drawn_for_page",
    "large_number",
    "legend_beside",
    "pale_grid",
    "plain_number",
    "plain_scale",
    "saved_figure",
    "set_title",
]

FORMATS = (".png", ".svg", ".pdf", ".jpg")

PLOT_BYTES = 1 << 17  # about as many as a plot takes

TITLE_POINTS = 10  # size of titles
HIGHER = 1.15  # how much higher a plot of a page is, since it has a legend neither beside nor in it

ASIDE = 10.0  # inches at the right and below, for the legend that a page cuts out
LABEL = 30  # letters of an axis' label that are as long as a plot of a page is high

_page: ContextVar[tuple[float, float] | None] = ContextVar("_page", default=None)
"""The width in inches and the least size of letters of the plots of a page; None elsewhere."""


@contextmanager
def drawn_for_page(inches: float, points: float) -> Iterator[None]:
    """Make all plots as wide, however long the names in their legends are.

    So letters have one size in all of them. Legends lie beside and below, within a canvas that is
    `ASIDE` inches wider and higher; the plot is at its top left.

    Parameters
    ----------
    inches : float
        The width.
    points : float
        The least size of letters.
    """
    token = _page.set((inches, points))
    try:
        yield
    finally:
        _page.reset(token)


def check_plot(path: Path) -> None:
    """Check early that a plot can be written to `path`.

    Raises
    ------
    InvalidProblem
        If its format is unknown, or as from `check_target`.
    """
    _check_format(path)
    check_target(path, PLOT_BYTES)


def _check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot plot to {path}: its name must end in {' '.join(FORMATS)}")


def saved_figure(
    path: Path,
    draw: Callable[[Axes], None],
    width: float,
    height: float,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw one diagram, below a row of pictures if there are any."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    _check_format(path)
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
    page = _page.get()
    canvas = None if page is None else _fit_page(figure, *page)
    with write_target(path) as temporary:
        figure.savefig(temporary, bbox_inches=canvas)


def _fit_page(figure: Figure, inches: float, points: float) -> Bbox:
    """Scale a drawn figure to a page, where letters keep their size; return its canvas."""
    from matplotlib.transforms import Bbox

    width, height = figure.get_size_inches()
    height *= HIGHER * inches / width
    figure.set_size_inches(inches, height)
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            legend.set_in_layout(False)
        for text in axes.texts:
            text.set_fontsize(max(points, text.get_fontsize()))
        axes.tick_params(axis="y", which="minor", labelsize=points)
        label = axes.get_ylabel()
        if len(label) > LABEL:
            halves = textwrap.fill(label, len(label) // 2 + 4)
            axes.set_ylabel(label.replace(" (", "\n(", 1) if " (" in label else halves)
    return Bbox([[0, -ASIDE], [inches + ASIDE, height]])


def set_title(axes: Axes, title: str, inches: float, pad: float = 6.0) -> None:
    """Put a title above, its lines broken where they would leave the picture."""
    from matplotlib.textpath import TextPath

    lines = []
    for line in title.splitlines():
        points = TextPath((0, 0), line, size=TITLE_POINTS, usetex=False).get_extents().width
        width = len(line) * 72 * inches / max(points, 1.0)  # in characters of this line
        lines.append(textwrap.fill(line, max(1, int(width))) if width < len(line) else line)
    axes.set_title("\n".join(lines), loc="left", fontsize=TITLE_POINTS, pad=pad)


def plain_number(value: float) -> str:
    """Return 0.1 and not a power of ten."""
    return f"{value:g}"


def large_number(value: float) -> str:
    """Return a number in thousands, millions or thousands of millions: 500 k, 2 M, 40 G."""
    for factor, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:g}"


def plain_scale(axes: Axes, unit: str = "", write: Callable[[float], str] = plain_number) -> None:
    """Make the y axis logarithmic, with plain numbers: 0.1 and not a power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{write(value)}{unit}")
    axes.yaxis.set_minor_formatter(partial(_minor_label, axes, unit, write))
    axes.tick_params(axis="y", which="minor", labelsize=7)


def _minor_label(axes: Axes, unit: str, write: Callable[[float], str], value: float, _: int) -> str:
    """Return a label between the powers of ten where an axis spans hardly more than one."""
    low, high = axes.get_ylim()
    shown = "2346" if high < 10 * low else "25" if high < 50 * low else ""
    text = write(value)
    return f"{text}{unit}" if text.strip("0.")[0] in shown else ""


def pale_grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw pale lines below all else, and no frame above and to the right."""
    axes.grid(True, axis=axis, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_beside(axes: Axes) -> None:
    """Name the lines beside the diagram, where they hide nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


PICTURE_HEIGHT = 2.6  # inches


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
