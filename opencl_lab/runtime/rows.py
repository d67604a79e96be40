"""Arrays of host or device as contiguous rows along one axis, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.runtime.arrays import (
    AnyArray,
    axis_of,
    check_out,
    empty,
    fitted,
    is_device_array,
    shares_memory,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.copies import Copy, View


@dataclass(frozen=True)
class Rows:
    """An array as contiguous rows along one axis, which `restore` reverses."""

    # Shape (rows, n), C-contiguous; shares memory with the original if its layout allows.
    data: AnyArray
    shape: tuple[int, ...]  # shape of the original
    axis: int  # the axis that became the last one, not negative

    @classmethod
    def of(
        cls,
        array: AnyArray,
        axis: int | None,
        call: Call,
        *,
        length: int | None = None,
        dtype: np.dtype[Any] | None = None,
        conjugate: bool = False,
    ) -> Rows:
        """Return `array` as rows along `axis`; None flattens it first.

        The other parameters are those of `fitted`, applied in the same copy.
        """
        if axis is None:
            flat = array.reshape(-1) if not is_device_array(array) else _flatten(array, call)
            return cls.of(flat, 0, call, length=length, dtype=dtype, conjugate=conjugate)
        axis = axis_of(axis, array.ndim)
        n = array.shape[axis] if length is None else length
        dtype = array.dtype if dtype is None else dtype
        shape = tuple(n if d == axis else size for d, size in enumerate(array.shape))
        rows = math.prod(size for d, size in enumerate(shape) if d != axis)
        if not is_device_array(array):
            array = fitted(array, call, n, axis, dtype, conjugate)
            plain = np.ascontiguousarray(np.moveaxis(array, axis, -1)).reshape(rows, n)
            return cls(plain, shape, axis)
        view = View.of(array, axis)
        if array.size and shape == array.shape and dtype == array.dtype and not conjugate:
            if math.prod(shape[axis + 1 :]) == 1 and View.of(array).is_plain:
                return cls(array.reshape(rows, n), shape, axis)
            if view.is_plain:
                order = [d for d in range(array.ndim) if d != axis] + [axis]
                return cls(array.transpose(order).reshape(rows, n), shape, axis)
        data = empty(array, (rows, n), dtype, call)
        if data.size:
            target = View.dense((*view.shape[:-1], n))
            copy = Copy(view.cut(target.shape), target, array.dtype, dtype, conjugate)
            copy.enqueue(call, array, data)
        return cls(data, shape, axis)

    @property
    def count(self) -> int:
        """Number of rows."""
        return math.prod(self.shape[d] for d in range(len(self.shape)) if d != self.axis)

    @property
    def length(self) -> int:
        """Number of elements per row."""
        return self.shape[self.axis]

    @property
    def in_place(self) -> bool:
        """Whether rows lie in memory as the array does: nothing lies within the axis."""
        return math.prod(self.shape[self.axis + 1 :]) == 1

    def target(
        self, out: AnyArray | None, dtype: np.dtype[Any], *inputs: AnyArray
    ) -> AnyArray | None:
        """Return `out` as rows that a kernel can write to directly, or None if it cannot.

        It is None without `out`, if the layout of `out` differs, or if `out` shares memory with the
        data or other inputs; `restore` then copies the result. An `out` of another shape or dtype
        is refused.
        """
        if out is None:
            return None
        check_out(out, self.data, self.shape, dtype)
        if not (self.in_place and out.size and out.flags.c_contiguous):
            return None
        if not out.dtype.isnative or (is_device_array(out) and out.offset):
            return None
        if any(shares_memory(out, array) for array in (self.data, *inputs)):
            return None
        return out.reshape(self.count, self.length)

    def restore(
        self,
        result: AnyArray,
        out: AnyArray | None,
        call: Call,
        *inputs: AnyArray,
    ) -> AnyArray:
        """Return the rows `result` as an array with the axes of the original, in `out` if given.

        The inputs are those passed to `target`.
        """
        order = [d for d in range(len(self.shape)) if d != self.axis] + [self.axis]
        moved = tuple(self.shape[d] for d in order)
        if out is not None and self.target(out, result.dtype, *inputs) is not None:
            return out  # the kernels wrote to it directly
        if not is_device_array(result):
            shaped = np.moveaxis(result.reshape(moved), -1, self.axis)
            if out is None:
                return np.ascontiguousarray(shaped)
            np.copyto(out, shaped)
            return out
        if out is None:
            if self.in_place:
                return result.reshape(self.shape)
            out = empty(result, self.shape, result.dtype, call)
        if result.size:
            target = View.of(out, self.axis)
            Copy(View.dense(moved), target, result.dtype, result.dtype).enqueue(call, result, out)
        return out


def _flatten(array: AnyArray, call: Call) -> AnyArray:
    if array.ndim == 0:
        return array.reshape(1)
    rows = Rows.of(array, array.ndim - 1, call)
    return rows.data.reshape(array.size)
