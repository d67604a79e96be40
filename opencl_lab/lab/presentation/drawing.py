"""Shared by all plots: files, titles, scales, legends."""

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

PLOT_BYTES = 1 << 17  # approximate size of a file

TITLE_POINTS = 10  # size of titles
HEIGHT_FACTOR = 1.15  # of plots on a page, which have no legend

LEGEND_ROOM = 10.0  # inches at the right and below, for the legend, which a page cuts out
LEGEND_POINTS, LEGEND_ROW = 8, 13.0  # font size and height of a row of a legend
HANDLE = 42.0  # points in a legend for the handle of a name, and between columns
Y_AXIS, X_AXIS = 72.0, 36.0  # points that an axis takes with its numbers and label
LABEL = 30  # letters of the longest label that fits beside a plot on a page

_page: ContextVar[tuple[float, float] | None] = ContextVar("_page", default=None)
"""The width in inches and the smallest font size of the plots of a page; None elsewhere."""


@contextmanager
def drawn_for_page(inches: float, points: float) -> Iterator[None]:
    """Draw all plots with a width of `inches`, however long the names in their legends are.

    Letters then have the same size in all plots, at least `points`. The plot is at the top left of
    a canvas that is `LEGEND_ROOM` inches wider and higher; the legend is below.
    """
    token = _page.set((inches, points))
    try:
        yield
    finally:
        _page.reset(token)


def check_plot(path: Path) -> None:
    """Check early that a plot can be written to `path`; raise InvalidProblem otherwise."""
    _check_format(path)
    check_target(path, PLOT_BYTES)


def _check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot plot to {path}: its name must end in {' '.join(FORMATS)}")


@contextmanager
def written_figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure with a size in inches, and write it to `path` at the end."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    _check_format(path)
    figure: Figure = NewFigure(figsize=(width, height), dpi=150)
    figure.set_layout_engine("none")  # whatever a user's matplotlibrc says
    FigureCanvasAgg(figure)
    yield figure
    page = _page.get()
    canvas = None if page is None else _fit_page(figure, *page)
    ConstrainedLayoutEngine().execute(figure)  # as the figure's own, it would draw all twice
    with write_target(path) as temporary:
        figure.savefig(temporary, bbox_inches=canvas)


def saved_figure(
    path: Path,
    draw: Callable[[Axes], None],
    width: float,
    height: float,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw one plot and write it; `pictures` are shown in a row above."""
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
    """Scale a drawn figure to a page without changing the size of letters; return its canvas."""
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

    width, height = figure.get_size_inches()
    height *= HEIGHT_FACTOR * inches / width
    figure.set_size_inches(inches, height)
    for axes in figure.axes:
        for item in axes.get_children():  # `findobj` would make all ticks
            if isinstance(item, Legend):
                item.set_in_layout(False)
        for text in axes.texts:
            text.set_fontsize(max(points, text.get_fontsize()))
        axes.tick_params(axis="y", which="minor", labelsize=points)
        axes.set_xlabel(_wrapped(axes.get_xlabel(), points, inches))
        label = axes.get_ylabel()
        if len(label) > LABEL:
            halves = textwrap.fill(label, len(label) // 2 + 4)
            axes.set_ylabel(label.replace(" (", "\n(", 1) if " (" in label else halves)
    return Bbox([[0, -LEGEND_ROOM], [inches + LEGEND_ROOM, height]])


def set_title(axes: Axes, title: str, inches: float, pad: float = 6.0) -> None:
    """Set the title, with lines wrapped to a width in inches."""
    text = _wrapped(title, TITLE_POINTS, inches)
    axes.set_title(text, loc="left", fontsize=TITLE_POINTS, pad=pad)


def _wrapped(text: str, points: float, inches: float) -> str:
    from opencl_lab.lab.presentation.ticks import text_width

    lines = []
    for line in text.splitlines():
        width = text_width(line, points)
        room = len(line) * 72 * inches / max(width, 1.0)  # in characters of this line's mean width
        lines.append(textwrap.fill(line, max(1, int(room) - 4)) if room < len(line) else line)
    return "\n".join(lines)


def plain_number(value: float) -> str:
    """Return a number without exponent, such as 0.1 or 10,000."""
    return f"{value:,.10g}"


def large_number(value: float) -> str:
    """Return a number with a prefix for thousands, millions or billions: 500 k, 2 M, 40 G."""
    for factor, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:g}"


def plain_scale(
    axis: XAxis | YAxis, unit: str = "", write: Callable[[float], str] = plain_number
) -> None:
    """Make an axis logarithmic, with plain numbers instead of powers of ten."""
    from opencl_lab.lab.presentation.ticks import show_values

    show_values(axis, lambda value: f"{write(value)}{unit}")


def size_scale(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the x axis logarithmic, with ticks at some of `sizes`, which are in ascending order."""
    from opencl_lab.lab.presentation.ticks import show_sizes

    show_sizes(axes, sizes, plain_number)


def pale_grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw a pale grid behind everything else, and no frame above and at the right."""
    axes.grid(True, axis=axis, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: Axes, notes: Sequence[str] = ()) -> None:
    """Draw the legend below the plot.

    `notes` explain dotted lines; they come below the names, in separate columns.
    """
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    from opencl_lab.lab.presentation.ticks import text_width

    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    dotted = [Line2D([], [], linestyle=":", color="0.6", linewidth=0.8) for _ in notes]
    below = X_AXIS
    for handles, names in (axes.get_legend_handles_labels(), (dotted, notes)):
        if not names:
            continue
        widest = HANDLE + max(text_width(name, LEGEND_POINTS) for name in names)
        columns = min(len(names), max(1, int((72 * width - Y_AXIS) / widest)))
        place = axes.transAxes + ScaledTranslation(0, -below / 72, figure.dpi_scale_trans)
        legend = Legend(
            axes, handles, names, fontsize=LEGEND_POINTS, frameon=False, ncols=columns,
            loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=place, borderpad=0,
            borderaxespad=0,
        )  # fmt: skip
        axes.add_artist(legend)
        legend.set_clip_on(False)  # otherwise the layout leaves no room for it
        below += LEGEND_ROW * math.ceil(len(names) / columns)
    if _page.get() is None:  # a page cuts legends out
        figure.set_figheight(height + (below - X_AXIS) / 72)


MOST_HEIGHT = 2.6  # inches of a row of pictures
WITHOUT_SCALE = 0.8  # share of its width that a picture has beside its colour scale


def _height_of(pictures: Mapping[str, Any], width: float) -> float:
    """Return the height in inches of a row of pictures with their names."""
    shape = max((image.shape for image in pictures.values()), key=lambda shape: shape[0] / shape[1])
    high = WITHOUT_SCALE * width / len(pictures) * shape[0] / shape[1]
    return float(min(MOST_HEIGHT, 0.4 + high))


def _draw_pictures(figure: SubFigure, pictures: Mapping[str, Any]) -> None:
    """Show images side by side: colours as they are, numbers in grey with a scale."""
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
        elif not low < high:  # also if a limit is NaN
            axes.imshow(image, cmap="gray", vmin=low, vmax=low + 1)
            style: Any = {"color": "white", "ha": "center", "transform": axes.transAxes}
            axes.text(0.5, 0.5, f"{image.flat[0]:g} everywhere", **style)
        else:
            shown = axes.imshow(image, cmap="gray", vmin=low, vmax=high)
            scale_axes = axes.inset_axes((1.03, 0, 0.05, 1))  # as high as the picture
            figure.colorbar(shown, cax=scale_axes).ax.tick_params(labelsize=6)
