"""Copies between strided views on a device: converted, conjugated, rolled, filled with zeros."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import (
    C_TYPES,
    WORD_TYPES,
    c_type,
    index_type,
    item_launch,
    real_type,
    widening,
    word_size,
)
from opencl_lab.core.plan import Buffer, Plan, round_up
from opencl_lab.runtime.call import Call

TEMPLATE = "common/copy.cl.mako"
CONVERTED = ("float32", "float64", "complex64", "complex128", "int64")
"""Types to which numbers are converted."""
COPY_GROUP = 256
"""Most work-items of a work-group; large, as GPUs start about one work-group per clock."""


@dataclass(frozen=True)
class View:
    """Shape, strides and offset of a strided array, counted in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, array: cl.array.Array, axis: int | None = None) -> View:
        """Return the view of `array`, with `axis` moved to the end if one is given."""
        itemsize = array.dtype.itemsize
        if array.offset % itemsize or any(stride % itemsize for stride in array.strides):
            raise InvalidProblem("strides and offset must be whole elements")
        order = list(range(array.ndim))
        if axis is not None:
            order.append(order.pop(axis))
        return cls(
            tuple(array.shape[d] for d in order),
            tuple(array.strides[d] // itemsize for d in order),
            array.offset // itemsize,
        )

    @classmethod
    def dense(cls, shape: tuple[int, ...]) -> View:
        """Return the view of a whole array in C order."""
        return cls(shape, dense_strides(shape), 0)

    @property
    def is_plain(self) -> bool:
        """Whether the elements lie in C order from the start of the buffer."""
        return self.offset == 0 and self.strides == dense_strides(self.shape)

    def cut(self, shape: tuple[int, ...]) -> View:
        """Return the view cut to at most `shape`, from the beginning of each axis."""
        least = tuple(min(have, want) for have, want in zip(self.shape, shape, strict=True))
        return View(least, self.strides, self.offset)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements of an array in C order."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


@dataclass(frozen=True)
class _CopyAxis:
    """One axis of a copy: elements of the target and of the source, strides, and shift."""

    shape: int
    extent: int
    source_stride: int
    target_stride: int
    shift: int

    def joined(self, inner: _CopyAxis) -> _CopyAxis | None:
        """Return this axis and a faster one merged into one, or None if that is impossible."""
        n = inner.shape
        if inner.extent != n or inner.shift:
            return None
        if (self.source_stride, self.target_stride) != (
            n * inner.source_stride,
            n * inner.target_stride,
        ):
            return None
        return _CopyAxis(
            self.shape * n,
            self.extent * n,
            inner.source_stride,
            inner.target_stride,
            self.shift * n,
        )


@dataclass(frozen=True)
class Copy:
    """A copy of the elements of one view to another."""

    # Both have the same number of dimensions. Where the target is longer it is padded with zeros;
    # the source is never longer.
    source: View
    target: View
    # Equal, or numeric: the target's is float32, float64 or complex, always complex for a complex
    # source; or int64 for integers.
    source_type: np.dtype[Any]
    target_type: np.dtype[Any]
    conjugate: bool = False  # the target is complex then
    # Cyclic shift along each axis of the target; empty for none.
    shifts: tuple[int, ...] = field(default=())

    @property
    def _axes(self) -> list[_CopyAxis]:
        """The fewest axes that describe the copy; the last one has the target's smallest stride."""
        shifts = self.shifts or (0,) * len(self.target.shape)
        axes = [
            _CopyAxis(shape, extent, source_stride, target_stride, shift % shape)
            for shape, extent, source_stride, target_stride, shift in zip(
                self.target.shape,
                self.source.shape,
                self.source.strides,
                self.target.strides,
                shifts,
                strict=True,
            )
            if shape != 1 or extent != 1
        ]
        axes.sort(key=lambda axis: -abs(axis.target_stride))
        joined: list[_CopyAxis] = []
        for axis in axes:
            both = joined[-1].joined(axis) if joined else None
            if both is None:
                joined.append(axis)
            else:
                joined[-1] = both
        return joined or [_CopyAxis(1, 1, 1, 1, 0)]

    def _types(self) -> dict[str, Any]:
        """Return how elements are read and written, for the template."""
        source, target = self.source_type, self.target_type
        if source == target and not self.conjugate:
            word = WORD_TYPES.get(source.itemsize)
            if word is None:
                raise InvalidProblem(f"cannot copy strided device arrays of dtype {source}")
            return {
                "SOURCE_T": word, "TARGET_T": word, "REAL_T": word, "FORM": "word", "COMPLEX": False
            }  # fmt: skip
        exact = source.kind in "iu" or target.kind in "fc"
        if source.name not in C_TYPES or target.name not in CONVERTED or not exact:
            raise InvalidProblem(f"cannot convert device arrays of dtype {source} to {target}")
        form = {"c": "complex"}.get(source.kind, "half" if source == np.float16 else "real")
        return {
            "SOURCE_T": c_type(source),
            "TARGET_T": c_type(target),
            "REAL_T": real_type(target),
            "FORM": form,
            "COMPLEX": target.kind == "c",
        }

    def _by_words(self) -> Copy:
        """Return this copy; for elements larger than any word type, the same in words."""
        size = self.source_type.itemsize
        if self.source_type != self.target_type or self.conjugate or size in WORD_TYPES or not size:
            return self
        word = word_size(size)

        def cut(view: View) -> View:
            words = size // word
            strides = (*(words * stride for stride in view.strides), 1)
            return View((*view.shape, words), strides, words * view.offset)

        dtype, shifts = np.dtype(f"V{word}"), (*self.shifts, 0) if self.shifts else ()
        return Copy(cut(self.source), cut(self.target), dtype, dtype, shifts=shifts)

    def plan(self, wg_size: int = COPY_GROUP) -> Plan:
        """Return the plan of the copy, without launches for an empty target."""
        by_words = self._by_words()
        if by_words is not self:
            return by_words.plan(wg_size)
        types = self._types()
        buffers = (
            Buffer("source", "in", self.source.shape, self.source_type),
            Buffer("target", "out", self.target.shape, self.target_type),
        )
        count = math.prod(self.target.shape)
        if not count:
            return Plan(buffers, ())
        dense = self.source.is_plain and self.source == self.target and not any(self.shifts)
        if dense and self.source_type == np.float16 and self.target_type == np.float32:
            return Plan(buffers, (widening("source", "target", count, wg_size),))
        axes = self._axes
        shifted, filled = any(a.shift for a in axes), any(a.extent != a.shape for a in axes)
        index = index_type(round_up(count, wg_size))
        arguments: dict[str, Any] = {
            "source": "source",
            "target": "target",
            "count": index(count),
            "source_offset": np.int64(self.source.offset),
            "target_offset": np.int64(self.target.offset),
        }
        for d, axis in enumerate(axes):
            arguments[f"shape_{d}"] = index(axis.shape)
            arguments[f"source_stride_{d}"] = np.int64(axis.source_stride)
            arguments[f"target_stride_{d}"] = np.int64(axis.target_stride)
            if shifted:
                arguments[f"shift_{d}"] = index(axis.shift)
            if filled:
                arguments[f"extent_{d}"] = index(axis.extent)
        params = {
            **types,
            "CONJUGATE": self.conjugate,
            "NDIM": len(axes),
            "SHIFTED": shifted,
            "FILLED": filled,
            "UNIT": axes[-1].source_stride == axes[-1].target_stride == 1,
            "INDEX_T": c_type(index),
            "WG_SIZE": wg_size,
        }
        launch = item_launch(TEMPLATE, "copy_strided", count, params, arguments)
        return Plan(buffers, (launch,))

    def enqueue(self, call: Call, source: cl.array.Array, target: cl.array.Array) -> None:
        """Enqueue the copy between two device arrays that share no memory."""
        wg_size = min(COPY_GROUP, call.device.capabilities.max_work_group)
        executable = call.session.executable(("copy", self), lambda: self.plan(wg_size))
        call.execute(executable, {"source": source}, {"target": target})
