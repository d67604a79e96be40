"""Which types filters take, and in which ones they compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type, lacks_type

Type = np.dtype[Any]
SHORT = ("bool", "int8", "uint8", "int16", "uint16", "float32")
"""Types whose numbers float32 holds exactly."""
TYPES = (*SHORT, "int32", "uint32", "int64", "uint64", "float64")
"""Types of arrays and results; complex ones are pairs of these."""
VECTOR_BYTES = 64
MANY_REGISTERS = 128
"""Registers that an item of a GPU may need for results side by side."""


def is_whole(dtype: Type) -> bool:
    """Return whether numbers of a type are integers, or bool."""
    return dtype.kind in "biu"


def sum_type(dtype: Type, result: Type, whole: bool) -> Type:
    """Return the type of sums of products; `whole` says that weights and values outside are, too.

    Integers are exact modulo the size of this type. Results that are cut to integers need the last
    bit of what they are cut from.
    """
    if is_whole(dtype) and is_whole(result) and whole:
        return np.dtype(np.uint64 if result.itemsize == 8 or result.kind == "b" else np.uint32)
    short = dtype.name in SHORT and result.name == "float32"
    return np.dtype(np.float32 if short else np.float64)


def mean_type(dtype: Type, result: Type, longest: int) -> Type:
    """Return the type of sums for means, in which those of integers do not wrap around."""
    if is_whole(dtype) and is_whole(result) and dtype.itemsize < 8:
        short = max(dtype.itemsize, result.itemsize) <= 2 and longest < 1 << 15
        return np.dtype(np.int32 if short else np.int64)
    return sum_type(dtype, result, whole=False)


def named(dtype: Type) -> str:
    """Return the name of a type as kernels know it: a type of OpenCL C, or bool."""
    return "bool" if dtype.kind == "b" else c_type(dtype)


@dataclass(frozen=True)
class Numbers:
    """What templates know of numbers: see ``clkernels/filters/numbers.mako``."""

    element: str
    sum: str
    result: str
    width: int
    reduce: str
    combine: tuple[str, ...] = ()
    complex: bool = False
    exact: bool = False

    @property
    def double(self) -> bool:
        """Whether there is double precision among them."""
        return "double" in (self.element, self.sum, self.result)

    @classmethod
    def of(
        cls, element: Type, total: Type, result: Type, width: int, reduce: str, **more: Any
    ) -> Numbers:
        """Return what templates know of three types and of vectors of `width` lanes."""
        exact = reduce == "sum" and total.kind == "f" and is_whole(result)
        names = c_type(element), c_type(total), named(result)
        return cls(*names, width, reduce, exact=exact, **more)


def lanes(device: Device, dtype: Type, wg_size: int = 1) -> int:
    """Return the lanes of vectors: of items that are alone in their group, on CPUs; else one."""
    if device.kind != "cpu" or wg_size > 1:
        return 1
    native = min(VECTOR_BYTES, max(16, device.native_vector_bytes))
    return max(2, min(16, native // dtype.itemsize))


def lacks(device: Device, *dtypes: Type) -> str | None:
    """Return why a device lacks arithmetic in one of several types, or None."""
    return next(filter(None, (lacks_type(device, dtype) for dtype in dtypes)), None)
