"""The problems of filters: along lines of an array, and by windows of any shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Buffer, Work
from opencl_lab.ops.filters.numbers import Type, is_whole
from opencl_lab.ops.solver import Problem

MODES = {
    **{name: name for name in ("constant", "nearest", "reflect", "mirror", "wrap")},
    "grid-constant": "constant",
    "grid-mirror": "reflect",
    "grid-wrap": "wrap",
}
"""The names of SciPy for what lies beyond the edges."""
BOUNDARIES = tuple(dict.fromkeys(MODES.values()))
"""The same in the order of their numbers in kernels."""
LONGEST = 1 << 30
"""Axes and windows must be shorter, as their places are 32-bit integers."""
Cval: TypeAlias = tuple[int | float, int | float]


@dataclass(frozen=True)
class Window:
    """A window along one axis: from `before` values before a place on, `size` values."""

    axis: int
    size: int
    before: int
    mode: str
    symmetry: int = 0
    """Of its weights: 1, or -1 if they change their sign with the side; 0 for none."""

    @property
    def boundary(self) -> np.int32:
        """The number of what lies beyond the edges."""
        return np.int32(BOUNDARIES.index(self.mode))


@dataclass(frozen=True)
class FilterProblem(Problem):
    """What filters of lines and filters by windows have in common.

    `cval` is the value beyond the edges, of the real and of the imaginary part; complex numbers are
    two real ones, in an axis of their own at the end.
    """

    sizes: ClassVar[tuple[str, ...]] = ("count", "taps")
    layout: ClassVar[tuple[str, ...]] = ("dtype", "reduce")

    shape: tuple[int, ...]
    dtype: Type
    result_type: Type
    sum_type: Type
    """In which sums are made; minima, maxima and ranks are those of the numbers themselves."""
    reduce: str
    cval: Cval
    complex: bool

    def _check(self, windows: tuple[Window, ...]) -> None:
        for window in windows:
            longest = max(self.shape[window.axis] + window.size, window.size)
            if longest >= LONGEST:
                raise InvalidProblem(f"an axis or window of {longest:,} values is too long")

    def outside(self, dtype: Type) -> dict[str, Any]:
        """Return the values beyond the edges in a type; of integers the low bits are kept."""
        values: list[Any] = list(self.cval)
        if dtype.kind in "iu":
            values = [value % 2**64 if isinstance(value, int) else value for value in values]
        with np.errstate(all="ignore"):
            values = [np.asarray(value).astype(dtype)[()] for value in values]
        return {"cval_0": values[0], "cval_1": values[1]}

    @property
    def image(self) -> Buffer:
        """The caller's array."""
        return Buffer("image", "in", *self._held(self.dtype))

    @property
    def result(self) -> Buffer:
        """The array of the result."""
        return Buffer("result", "out", *self._held(self.result_type))

    def _held(self, dtype: Type) -> tuple[tuple[int, ...], Type]:
        """Return shape and type of an array of the caller, whose numbers may be complex."""
        if not self.complex:
            return self.shape, dtype
        return self.shape[:-1], np.promote_types(dtype, np.complex64)

    @property
    def exact(self) -> bool:
        """Whether sums are those of SciPy to the last bit, as results are cut to integers."""
        cut = self.sum_type.kind == "f" and is_whole(self.result_type)
        return self.reduce == "sum" and cut

    @property
    def count(self) -> int:
        """Values of the array."""
        return math.prod(self.shape)

    @property
    def taps(self) -> int:
        """Values that each result is made of, in all passes."""
        raise NotImplementedError

    @property
    def looked_up(self) -> dict[str, Any]:
        """What tuned configurations are looked up by."""
        about = {"dtype": self.dtype.name, "reduce": self.reduce}
        return {**about, "count": self.count, "taps": self.taps}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and the sizes."""
        return {**super().as_dict(), **self.looked_up}

    @property
    def title(self) -> str:
        """The shape, the type, and how many values are reduced how."""
        shape = " x ".join(map(str, self.shape))
        return f"{self.reduce} of {self.taps} values for {shape} {self.dtype}"

    @property
    def work(self) -> Work:
        """An operation or two for each value of a window; one read and one write."""
        moved = self.count * (self.dtype.itemsize + self.result_type.itemsize)
        return Work(flops=2.0 * self.count * self.taps, bytes=float(moved))


@dataclass(frozen=True)
class LinesProblem(FilterProblem):
    """Filters along axes, one after the other, whose results are in `result_type` each time.

    Several terms are such filters of the same array, whose results are added; with `root`, their
    squares are, and the result is the root of that.
    """

    terms: tuple[tuple[Window, ...], ...] = ()
    root: bool = False

    def __post_init__(self) -> None:
        for term in self.terms:
            self._check(term)

    @property
    def taps(self) -> int:
        """Values that each result is made of, in all passes."""
        return sum(window.size for term in self.terms for window in term)


@dataclass(frozen=True)
class WindowProblem(FilterProblem):
    """Filters by a window over several axes, of which `places` values count.

    `holes` are the places that do not, in the order of an array of the window; of sums, they are
    unknown.
    """

    windows: tuple[Window, ...] = ()
    places: int = 1
    rank: int = 0
    holes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._check(self.windows)

    @property
    def taps(self) -> int:
        """Values that each result is made of."""
        return self.places

    @cached_property
    def axes(self) -> tuple[tuple[Window, int], ...]:
        """The windows of as few axes as there can be, and their lengths.

        The last one may have several values at each place, see `inner`.
        """
        last = max((window.axis for window in self.windows), default=0)
        by_axis = {window.axis: window for window in self.windows}
        found: list[tuple[Window, int]] = []
        for axis, n in enumerate(self.shape[: last + 1]):
            window = by_axis.get(axis)
            if window is None and found and found[-1][0].size == 1 and axis < last:
                found[-1] = found[-1][0], found[-1][1] * n
            else:
                found.append((window or Window(axis, 1, 0, "constant"), n))
        return tuple(found)

    @property
    def inner(self) -> int:
        """Values at each place of the last of `axes`."""
        last = max((window.axis for window in self.windows), default=0)
        return math.prod(self.shape[last + 1 :])

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The shape of the array that is continued beyond its edges; rows are one axis."""
        *lead, row = (n + window.size - 1 for window, n in self.axes)
        return (*lead, row * self.inner)

    @property
    def strides(self) -> tuple[int, ...]:
        """Values from a place to the next one in that array, for each of `axes`."""
        shape = self.padded_shape
        return (*(math.prod(shape[d + 1 :]) for d in range(len(shape) - 1)), self.inner)

    def distances(self, footprint: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return where the values that count lie in that array, from the first one of a window.

        The axes of the footprint are those of `windows`.
        """
        stride_of = {
            window.axis: stride for (window, _), stride in zip(self.axes, self.strides, strict=True)
        }
        strides = np.array([stride_of[window.axis] for window in self.windows], np.int64)
        places = np.argwhere(footprint).astype(np.int64)
        return np.ascontiguousarray(places @ strides, np.int64)
