"""What radix sorts move: keys as bits, and the values that travel with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.kernels import WORD_TYPES, c_type
from opencl_lab.core.plan import Argument, Buffer, named
from opencl_lab.ops.sort.problem import SortProblem


@dataclass(frozen=True)
class SortElement:
    """What templates need to know of keys and values: see ``clkernels/sort/keys.mako``."""

    key: str  # OpenCL C type of a key
    descending: bool = False
    value: str | None = None  # OpenCL C type of a value while it is sorted
    bits: tuple[int, int] | None = None  # the bits of a key's code to sort by; None: all
    indices: bool = False  # whether values are positions in the row, and keys are not wanted
    nan_first: bool = False  # whether descending keys begin with NaN, as `SortProblem` says
    time: bool = False  # whether keys are times, of which the least integer is NaT

    @classmethod
    def of(cls, dtype: np.dtype[Any], **options: Any) -> SortElement:
        """Return what templates need to know of keys of a NumPy dtype, with the other fields."""
        time = dtype.kind in "mM"
        return cls("long" if time else c_type(dtype), **options, time=time)


@dataclass(frozen=True)
class Elements:
    """Keys and values of a problem: their types in OpenCL C, and the buffers that hold them."""

    problem: SortProblem

    @property
    def value_dtype(self) -> np.dtype[Any] | None:
        """Type of a value while it is sorted; positions have the smallest type that holds them."""
        if self.problem.indices:
            return np.dtype(np.uint32 if self.problem.n < 2**32 else np.uint64)
        return np.dtype(f"V{self.problem.value_bytes}") if self.problem.value_bytes else None

    @property
    def value_type(self) -> str | None:
        """The same in OpenCL C, or None if there are no values."""
        return None if self.value_dtype is None else WORD_TYPES[self.value_dtype.itemsize]

    @property
    def nbytes(self) -> int:
        """Size of a structure of a key and its value, with the alignment of OpenCL C."""
        key = self.problem.dtype.itemsize
        return key if self.value_dtype is None else 2 * max(key, self.value_dtype.itemsize)

    @property
    def element(self) -> SortElement:
        """These types and options as one argument of a template."""
        problem = self.problem
        return SortElement.of(
            problem.dtype,
            descending=problem.descending,
            value=self.value_type,
            bits=problem.bits,
            indices=problem.indices,
            nan_first=problem.nan_first,
        )

    @property
    def buffers(self) -> list[Buffer]:
        """The buffers of the user. Where indices are wanted, sorted keys are not among them."""
        problem = self.problem
        shape = (problem.rows, problem.n)
        buffers = [Buffer("keys", "in", shape, problem.dtype)]
        if not problem.indices:
            buffers.append(Buffer("sorted", "out", shape, problem.dtype))
        if problem.value_bytes:
            assert self.value_dtype is not None
            buffers.insert(1, Buffer("values", "in", shape, self.value_dtype))
            buffers.append(Buffer("sorted_values", "out", shape, self.value_dtype))
        if problem.indices:
            buffers.append(Buffer("sorted_values", "out", shape, np.dtype(np.int64)))
        return buffers

    @property
    def arguments(self) -> dict[str, Argument]:
        """The user's buffers as arguments of a kernel."""
        return named(*(buffer.name for buffer in self.buffers))
