"""Ticks of logarithmic axes, with as many labels as there is room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import (
    Locator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

FEWEST = 3  # labels of an axis; with fewer, values between them cannot be read
FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
"""Multiples of each power of ten that get labels; the first set with enough labels is used."""
GAP = 6.0  # points between two labels


class _RoundValues(Locator):
    """Powers of ten and, if an axis spans few of them, round values between them."""

    def __call__(self) -> Sequence[float]:
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        assert self.axis is not None
        low, high = sorted((vmin, vmax))
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        stride = math.ceil((last - first + 1) / max(self.axis.get_tick_space(), FEWEST))
        for factors in FACTORS:
            ticks = [x * 10.0**power for power in range(first, last + 1, stride) for x in factors]
            if sum(low <= tick <= high for tick in ticks) >= FEWEST:
                return ticks
        return list(MaxNLocator(FEWEST + 1).tick_values(low, high))


class _SpacedSizes(Locator):
    """Sizes whose labels do not overlap: the last one, the first, then larger sizes first.

    The others have no ticks, since their data have marks, and Matplotlib is slow with ticks.
    """

    def __init__(self, axes: Axes, sizes: Sequence[int], write: Callable[[float], str]) -> None:
        self._axes, self._sizes, self._write = axes, sizes, write

    def __call__(self) -> Sequence[float]:
        axis = self._axes.xaxis
        points = float(axis.get_major_ticks(1)[0].label1.get_fontsize())
        low, high = map(math.log, axis.get_view_interval())
        length = self._axes.bbox.width * 72 / self._axes.figure.dpi
        taken: dict[float, tuple[float, float]] = {}
        for size in (self._sizes[-1], self._sizes[0], *self._sizes[-2:0:-1]):
            middle = (math.log(size) - low) / (high - low) * length
            half = (text_width(self._write(size), points) + GAP) / 2
            if all(middle + half <= a or middle - half >= b for a, b in taken.values()):
                taken[size] = middle - half, middle + half
        return sorted(taken)


@lru_cache(maxsize=4096)  # since each layout asks for each label again
def text_width(text: str, points: float) -> float:
    """Return the width of a text in points."""
    font = FontProperties(size=points)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def show_values(axis: XAxis | YAxis, write: Callable[[float], str]) -> None:
    """Make an axis logarithmic, with labels of round values."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(_RoundValues())
    axis.set_major_formatter(lambda value, _: write(value))
    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_minor_formatter(NullFormatter())


def show_sizes(axes: Axes, sizes: Sequence[int], write: Callable[[float], str]) -> None:
    """Make the x axis logarithmic, with ticks at those sizes for which there is room."""
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    if not sizes:
        return
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    axes.xaxis.set_major_locator(_SpacedSizes(axes, sizes, write))
    axes.xaxis.set_major_formatter(lambda value, _: write(value))
