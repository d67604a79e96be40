"""What all plots share: files, titles, scales, legends."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import check_target, write_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.transforms import Bbox

FORMATS = (".png", ".svg", ".pdf", ".jpg")

PLOT_BYTES = 1 << 17  # about as many as a plot takes

TITLE_POINTS = 10  # size of titles
HIGHER = 1.15  # how much higher a plot of a page is, since it has no legend

ASIDE = 10.0  # inches at the right and below, for the legend that a page cuts out
LEGEND_POINTS, LEGEND_ROW = 8, 13.0  # size of names in a legend, and points from row to row
SAMPLE = 42.0  # points in a legend for the sample of a line, and between columns
BESIDE, BENEATH = 72.0, 36.0  # points of the y axis with its numbers and label, and of the x axis
LABEL = 30  # letters of an axis' label that are as long as a plot of a page is high

_page: ContextVar[tuple[float, float] | None] = ContextVar("_page", default=None)
"""The width in inches and the least size of letters of the plots of a page; None elsewhere."""


@contextmanager
def drawn_for_page(inches: float, points: float) -> Iterator[None]:
    """Make all plots as wide, however long the names in their legends are.

    So letters have one size in all of them, at least `points`. Legends lie below, within a canvas
    that is `ASIDE` inches wider and higher; the plot is at its top left.
    """
    token = _page.set((inches, points))
    try:
        yield
    finally:
        _page.reset(token)


def check_plot(path: Path) -> None:
    """Check early that a plot can be written to `path`; InvalidProblem says why not."""
    _check_format(path)
    check_target(path, PLOT_BYTES)


def _check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot plot to {path}: its name must end in {' '.join(FORMATS)}")


@contextmanager
def written_figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Hand out an empty figure of a size in inches; in the end it is written to `path`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    _check_format(path)
    figure: Figure = NewFigure(figsize=(width, height), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    yield figure
    page = _page.get()
    canvas = None if page is None else _fit_page(figure, *page)
    with write_target(path) as temporary:
        figure.savefig(temporary, bbox_inches=canvas)


def saved_figure(
    path: Path,
    draw: Callable[[Axes], None],
    width: float,
    height: float,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw one diagram, below a row of pictures if there are any."""
    with written_figure(path, width, height) as figure:
        if not pictures:
            draw(figure.add_subplot())
            return
        high = _height_of(pictures, width)
        figure.set_figheight(height + high)
        above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(high, height))[:, 0]
        _draw_pictures(above, pictures)
        draw(below.add_subplot())


def _fit_page(figure: Figure, inches: float, points: float) -> Bbox:
    """Scale a drawn figure to a page, where letters keep their size; return its canvas."""
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

    width, height = figure.get_size_inches()
    height *= HIGHER * inches / width
    figure.set_size_inches(inches, height)
    for axes in figure.axes:
        for legend in axes.findobj(Legend):
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
        room = len(line) * 72 * inches / max(points, 1.0)  # in characters of this line's mean width
        lines.append(textwrap.fill(line, max(1, int(room) - 4)) if room < len(line) else line)
    axes.set_title("\n".join(lines), loc="left", fontsize=TITLE_POINTS, pad=pad)


def plain_number(value: float) -> str:
    """Return 0.1 and 10,000, and no powers of ten."""
    return f"{value:,.10g}"


def large_number(value: float) -> str:
    """Return a number in thousands, millions or thousands of millions: 500 k, 2 M, 40 G."""
    for factor, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:g}"


def plain_scale(
    axis: XAxis | YAxis, unit: str = "", write: Callable[[float], str] = plain_number
) -> None:
    """Make an axis logarithmic, with plain numbers: 0.1 and not a power of ten."""
    from opencl_lab.lab.presentation.ticks import show_values

    show_values(axis, lambda value: f"{write(value)}{unit}")


def size_scale(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the x axis logarithmic, with a tick at each of some sizes, the smallest first."""
    from opencl_lab.lab.presentation.ticks import show_sizes

    show_sizes(axes, sizes, plain_number)


def pale_grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw pale lines below all else, and no frame above and to the right."""
    axes.grid(True, axis=axis, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: Axes, notes: Sequence[str] = ()) -> None:
    """Name the lines below the diagram, where they hide nothing and take no width from it.

    `notes` explain dotted lines; they stand below the names, in columns of their own.
    """
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    from opencl_lab.lab.presentation.ticks import text_width

    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    dotted = [Line2D([], [], linestyle=":", color="0.6", linewidth=0.8) for _ in notes]
    below = BENEATH
    for handles, names in (axes.get_legend_handles_labels(), (dotted, notes)):
        if not names:
            continue
        widest = SAMPLE + max(text_width(name, LEGEND_POINTS) for name in names)
        columns = min(len(names), max(1, int((72 * width - BESIDE) / widest)))
        place = axes.transAxes + ScaledTranslation(0, -below / 72, figure.dpi_scale_trans)
        legend = Legend(
            axes, handles, names, fontsize=LEGEND_POINTS, frameon=False, ncols=columns,
            loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=place, borderpad=0,
            borderaxespad=0,
        )  # fmt: skip
        axes.add_artist(legend)
        legend.set_clip_on(False)  # else it is given no room
        below += LEGEND_ROW * math.ceil(len(names) / columns)
    if _page.get() is None:  # a page cuts legends out
        figure.set_figheight(height + (below - BENEATH) / 72)


MOST_HIGH = 2.6  # inches of a row of pictures
WITHOUT_SCALE = 0.8  # of the width of a picture, what its scale leaves


def _height_of(pictures: Mapping[str, Any], width: float) -> float:
    """Return the inches that a row of pictures takes, with their names."""
    shape = max((image.shape for image in pictures.values()), key=lambda shape: shape[0] / shape[1])
    high = WITHOUT_SCALE * width / len(pictures) * shape[0] / shape[1]
    return float(min(MOST_HIGH, 0.4 + high))


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
        elif not low < high:  # not a number, too
            axes.imshow(image, cmap="gray", vmin=low, vmax=low + 1)
            style: Any = {"color": "white", "ha": "center", "transform": axes.transAxes}
            axes.text(0.5, 0.5, f"{image.flat[0]:g} everywhere", **style)
        else:
            shown = axes.imshow(image, cmap="gray", vmin=low, vmax=high)
            scale_axes = axes.inset_axes((1.03, 0, 0.05, 1))  # as high as the picture
            figure.colorbar(shown, cax=scale_axes).ax.tick_params(labelsize=6)
