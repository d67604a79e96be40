"""The problem of a 2D convolution: its geometry, its types, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import exact_number, real_number
from opencl_lab.core.plan import Work
from opencl_lab.ops.problem import Problem

IMAGE_TYPES = ("uint8", "int16", "uint16", "float16", "float32", "float64")
Mode: TypeAlias = Literal["same", "valid", "full"]
Boundary: TypeAlias = Literal["constant", "nearest", "reflect", "mirror", "wrap"]
MODES = get_args(Mode)
BOUNDARIES = get_args(Boundary)
EXACT_TYPES = ("bool", "int8", "int32", "uint32", "int64", "uint64")
"""Types of images that are filtered, too; they are not measured or tuned."""
FLOAT32 = np.dtype("float32")
SIDE_LIMIT = 2**30
"""Sides must be shorter, so that coordinates of the extended image are 32-bit integers."""


def accumulator_for(dtype: np.dtype[Any], exact: bool = False) -> np.dtype[Any]:
    """Return the type in which products of a pixel of `dtype` and a weight are summed.

    `exact` says that the weights are integers, so that sums over integer images are exact; where
    they do not wrap around, they may need more bits than this type has.
    """
    large = dtype.itemsize == 8
    if exact and dtype.kind in "biu":
        return np.dtype(np.int64 if large else np.int32)
    return np.dtype(np.float64) if large or dtype.name in ("int32", "uint32") else FLOAT32


def limits_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type or bool."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def value_read(
    cval: int | float, mode: str, boundary: str, filter_shape: tuple[int, ...]
) -> int | float:
    """Return the value beyond the edges, or zero where no window reaches it."""
    read = boundary == "constant" and mode != "valid" and math.prod(filter_shape) != 1
    return cval if read else 0.0


@dataclass(frozen=True)
class Conv2dProblem(Problem):
    """Correlate images with one filter.

    The result at (y, x) is the sum over the filter of ``weights[j, i]`` times the pixel
    at ``(y + j, x + i)`` plus `offset`, where the image is continued beyond its edges as
    `boundary` says.
    """

    sizes = ("height", "width", "batch")
    layout = ("filter_height", "filter_width", "dtype", "accumulator", "channels")

    # Of each image, in pixels.
    height: int
    width: int
    filter_height: int
    filter_width: int
    # Type of images and results: one of `IMAGE_TYPES` or `EXACT_TYPES`.
    dtype: np.dtype[Any] = FLOAT32
    batch: int = 1  # images, one after the other in memory
    # Values of a pixel, contiguous in memory; each channel is filtered by itself.
    channels: int = 1
    # ``same``: as large as the image, as `scipy.ndimage.correlate` (with `flip`:
    # `scipy.ndimage.convolve`); ``valid`` and ``full``: as `scipy.signal.correlate2d`
    # (`convolve2d`), so that ``valid`` exchanges image and filter where the filter is the larger
    # one.
    mode: str = "same"
    boundary: str = "constant"  # what lies beyond the edges, by the names of `scipy.ndimage`
    cval: int | float = 0.0  # the value there for ``constant``
    flip: bool = False  # turn the filter by 180 degrees first: true convolution
    # Integer results stop at the limits of their type instead of wrapping around; needed for bool.
    saturate: bool = False
    # Type of weights and sums; default: `accumulator_for` the image.
    accumulator: np.dtype[Any] | None = None
    # Whether the filter is the outer product of two vectors, which then are inputs, too.
    separable: bool = False
    # Whether sums of int64 weights take 128 bits.
    long_sums: bool = False

    def __post_init__(self) -> None:
        if self.dtype.name not in IMAGE_TYPES + EXACT_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot filter images of dtype {self.dtype}; "
                f"supported: {', '.join(IMAGE_TYPES + EXACT_TYPES)}"
            )
        for name, known in (("mode", MODES), ("boundary", BOUNDARIES)):
            if getattr(self, name) not in known:
                raise InvalidProblem(
                    f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}"
                )
        self._check_sizes(*self.sizes, "channels")
        if min(self.filter_height, self.filter_width) < 1:
            raise InvalidProblem(
                f"the filter needs weights: it is {self.filter_height} x {self.filter_width}"
            )
        sides = (self.height, self.width * self.channels, self.filter_height, self.filter_width)
        if max(sides) >= SIDE_LIMIT:
            raise InvalidProblem(f"a side of {max(sides)} elements is too long: not below 2^30")
        if self.filter_height * self.filter_width >= 2**31:
            raise InvalidProblem("a filter of 2^31 weights is too large")
        if self.accumulator is None:
            object.__setattr__(self, "accumulator", accumulator_for(self.dtype))
        object.__setattr__(self, "cval", self._held_cval())
        self._check_mode()

    def _held_cval(self) -> int | float:
        """Return the value beyond the edges as kernels use it; equal problems compare equal."""
        cval = value_read(self.cval, self.mode, self.boundary, self.filter_shape)
        if self.sum_type.kind == "f":
            cval = real_number(cval, "cval")
            return math.nan if math.isnan(cval) else cval  # one NaN object for all
        whole = exact_number(cval, "cval")
        if whole and not isinstance(whole, int):
            raise InvalidProblem(f"cval {cval} is no whole number, and sums are made in integers")
        least, most = limits_of(self.value_type)
        if not self.saturate:
            return (int(whole) - least) % (most - least + 1) + least
        if not least <= whole <= most:
            raise InvalidProblem(f"cval {cval} does not fit {self.value_type}, the sums' type")
        return int(whole)

    def _check_mode(self) -> None:
        if self.mode == "valid" and not self.exchanged:
            outgrown = self.filter_height > self.height or self.filter_width > self.width
            if outgrown:
                raise InvalidProblem(
                    f"the filter, {self.filter_height} x {self.filter_width}, is larger than the "
                    f"image, {self.height} x {self.width}, in one direction only: there is no "
                    "'valid' part; use mode='same' or 'full'"
                )
        if self.mode == "full" and not self.height * self.width and self.boundary != "constant":
            raise InvalidProblem(
                f"an image without pixels cannot be continued by {self.boundary!r}; "
                "use boundary='constant'"
            )

    @property
    def sum_type(self) -> np.dtype[Any]:
        """Type of weights and sums."""
        assert self.accumulator is not None  # set when it was made
        return self.accumulator

    @property
    def value_type(self) -> np.dtype[Any]:
        """Type of a value as a factor of a product."""
        return self.dtype if self.long_sums and self.dtype == np.uint64 else self.sum_type

    @property
    def exchanged(self) -> bool:
        """Whether image and filter change roles: ``valid``, and the filter is the larger."""
        larger = self.filter_height >= self.height and self.filter_width >= self.width
        return (
            self.mode == "valid"
            and larger
            and (self.filter_height > self.height or self.filter_width > self.width)
        )

    @property
    def extension(self) -> tuple[str, int | float]:
        """The boundary and its value as kernels need them: zero around an exchanged image."""
        return ("constant", 0.0) if self.exchanged else (self.boundary, self.cval)

    def _along(self, size: int, taps: int) -> tuple[int, int]:
        """Return the length of the result along an axis, and where its first window begins."""
        if self.mode == "same":
            return size, -((taps - 1) // 2) if self.flip else -(taps // 2)
        if self.mode == "full":
            return size + taps - 1, 1 - taps
        return (taps - size + 1, size - taps) if self.exchanged else (size - taps + 1, 0)

    @property
    def out_height(self) -> int:
        """Rows of a result."""
        return self._along(self.height, self.filter_height)[0]

    @property
    def out_width(self) -> int:
        """Pixels in a row of a result."""
        return self._along(self.width, self.filter_width)[0]

    @property
    def offset(self) -> tuple[int, int]:
        """Row and column at which the window of the first result begins; not positive."""
        return (
            self._along(self.height, self.filter_height)[1],
            self._along(self.width, self.filter_width)[1],
        )

    @property
    def image_shape(self) -> tuple[int, int, int, int]:
        """Batch, rows, columns, channels of the images."""
        return self.batch, self.height, self.width, self.channels

    @property
    def result_shape(self) -> tuple[int, int, int, int]:
        """Batch, rows, columns, channels of the results."""
        return self.batch, self.out_height, self.out_width, self.channels

    @property
    def filter_shape(self) -> tuple[int, int]:
        """Rows and columns of the filter."""
        return self.filter_height, self.filter_width

    @property
    def products(self) -> int:
        """Products of a pixel and a weight in the direct sums."""
        return math.prod(self.result_shape) * self.filter_height * self.filter_width

    @property
    def title(self) -> str:
        """The sizes of images and filter, the type of the pixels, and options that are given."""
        images = f"{self.height:,} x {self.width:,} {self.dtype} pixels"
        images += f" of {self.channels} channels" if self.channels != 1 else ""
        images = images if self.batch == 1 else f"{self.batch:,} images of {images}"
        parts = [f"{images} by {self.filter_height:,} x {self.filter_width:,} weights"]
        parts += [f"mode {self.mode}"] * (self.mode != "same")
        if self.boundary != "constant":
            parts.append(f"boundary {self.boundary}")
        elif self.cval:
            parts.append(f"cval {self.cval:g}")
        return ", ".join(parts + ["flipped"] * self.flip + ["saturating"] * self.saturate)

    @property
    def work(self) -> Work:
        """A multiplication and an addition per weight; one read and one write per pixel."""
        results = math.prod(self.result_shape)
        taps = self.filter_height * self.filter_width
        each = self.filter_height + self.filter_width if self.separable else taps
        moved = (math.prod(self.image_shape) + results) * self.dtype.itemsize
        return Work(flops=2.0 * results * each, bytes=float(moved + taps * self.sum_type.itemsize))
