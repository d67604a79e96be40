"""Shared by all plots: files, titles, scales, legends."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import check_target, write_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure, SubFigure

FORMATS = (".png", ".svg", ".pdf", ".jpg")
PLOT_BYTES = 1 << 17  # approximate size of a file
LETTER = 0.07  # inches: mean width of a letter of titles and legends, with room
HANDLE, ROW = 0.6, 0.18  # inches of a legend: what stands before a name, and the height of a row

ON_PAGE = 0.75  # scale of plots on a page, which shows them small: letters keep their size

Target: TypeAlias = Path | BytesIO
"""Where a plot is written: a file, or as SVG in memory."""


def check_plot(path: Path) -> None:
    """Check early that a plot can be written to `path`; raise InvalidProblem otherwise."""
    _check_format(path)
    check_target(path, PLOT_BYTES)


def _check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot plot to {path}: its name must end in {' '.join(FORMATS)}")


@contextmanager
def written_figure(target: Target, width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure with a size in inches, and write it to `target` at the end."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if isinstance(target, Path):
        _check_format(target)
    else:
        width, height = ON_PAGE * width, ON_PAGE * height
    with rc_context({"text.parse_math": False}):  # names are not formulas
        figure: Figure = NewFigure(figsize=(width, height), dpi=150)
        figure.set_layout_engine("none")  # whatever a user's matplotlibrc says
        FigureCanvasAgg(figure)
        yield figure
        ConstrainedLayoutEngine().execute(figure)  # as the figure's own, it would draw all twice
        if isinstance(target, Path):
            with write_target(target) as temporary:
                figure.savefig(temporary)
            return
        # Text stays text, and equal data give equal pictures.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "oclab"}):
            figure.savefig(target, format="svg", metadata={"Date": None})


def saved_figure(
    target: Target,
    draw: Callable[[Axes], None],
    width: float,
    height: float,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Draw one plot and write it; `pictures` are shown in a row above."""
    with written_figure(target, width, height) as figure:
        if not pictures:
            draw(figure.add_subplot())
            return
        high = _height_of(pictures, width)
        figure.set_figheight(figure.get_figheight() + high)
        above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(high, height))[:, 0]
        _draw_pictures(above, pictures)
        draw(below.add_subplot())


def set_title(axes: Axes, title: str, inches: float) -> None:
    """Set the title, with lines wrapped to a width in inches."""
    lines = (textwrap.fill(line, int(inches / LETTER)) for line in title.splitlines())
    axes.set_title("\n".join(lines), loc="left", fontsize=10)


def plain_number(value: float) -> str:
    """Return a number without exponent, such as 0.1 or 10,000."""
    return f"{value:,.10g}"


def plain_scale(
    axis: XAxis | YAxis, unit: str = "", write: Callable[[float], str] = plain_number
) -> None:
    """Make an axis logarithmic; Matplotlib chooses the labels, `write` writes them."""
    from matplotlib.ticker import LogFormatter, LogLocator

    class Written(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{write(x)}{unit}" if super().__call__(x, pos) else ""

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_formatter(Written())
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    # Where there is one power of ten at most, these are labelled, too.
    axis.set_minor_formatter(Written(minor_thresholds=(1.5, math.inf)))


def pale_grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw a pale grid behind everything else, and no frame above and at the right."""
    axes.grid(True, axis=axis, which="major", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: Axes) -> None:
    """Draw the legend below all plots of the figure."""
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    figure = axes.figure.figure  # the whole one, where this is a part
    width, height = figure.get_size_inches()
    columns = int(width / (HANDLE + LETTER * max(map(len, names))))
    columns = max(1, min(len(names), columns))
    figure.set_figheight(height + ROW * math.ceil(len(names) / columns))
    figure.legend(
        handles, names, loc="outside lower left", ncols=columns, fontsize=8, frameon=False
    )


MOST_HEIGHT = 2.6  # inches of a row of pictures


def _height_of(pictures: Mapping[str, Any], width: float) -> float:
    """Return the height in inches of a row of pictures with their names."""
    shape = max((image.shape for image in pictures.values()), key=lambda shape: shape[0] / shape[1])
    return float(min(MOST_HEIGHT, 0.4 + width / len(pictures) * shape[0] / shape[1]))


def _draw_pictures(figure: SubFigure, pictures: Mapping[str, Any]) -> None:
    """Show images side by side: colours as they are, numbers in grey, from black at 0 or less."""
    panels = figure.subplots(1, len(pictures), squeeze=False)[0]
    for axes, (name, image) in zip(panels, pictures.items(), strict=True):
        image = image.astype(float)
        low, high = min(0.0, np.nanmin(image)), np.nanmax(image)
        axes.set_title(f"{name}\nfrom {low:.4g} to {high:.4g}", fontsize=9)
        axes.set_axis_off()
        if image.ndim == 3:
            scale = max(255.0 if high > 1 else 1.0, high)
            axes.imshow(np.nan_to_num(np.abs(image[..., :3]) / scale).clip(0, 1))
        else:
            axes.imshow(image, cmap="gray", vmin=low, vmax=high)
