"""Arrays of the host and of the device under one roof: rows along an axis, strided copies."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.errors import InvalidProblem
from opencl_lab.plan import Buffer, Launch, Plan, round_up
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.kept import new_array, with_room
from opencl_lab.runtime.recording import note_fresh
from opencl_lab.runtime.session import session_of
from opencl_lab.words import counted

__all__ = [
    "AnyArray",
    "Rows",
    "as_array",
    "assign",
    "contiguous",
    "direct_target",
    "is_device_array",
    "is_plain",
    "queue_for",
    "reshaped",
    "to_device",
]

AnyArray: TypeAlias = Any
"""A `numpy.ndarray` or a `pyopencl.array.Array`."""

WORD_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
COPY_GROUP = 64  # work-items, where the device takes so many


def is_device_array(array: Any) -> bool:
    """Return whether `array` is a `pyopencl.array.Array`."""
    return isinstance(array, cl.array.Array)


def as_array(value: Any) -> AnyArray:
    """Return a device array as it is, and anything else as a NumPy array."""
    return value if is_device_array(value) else np.asarray(value)


def native(array: AnyArray) -> AnyArray:
    """Return `array` in the machine's byte order, which device arrays always have."""
    if not is_device_array(array) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def queue_for(array: AnyArray, queue: cl.CommandQueue | None) -> cl.CommandQueue | None:
    """Return the queue that a device array lives on, else the one that the caller gave.

    Raises
    ------
    InvalidProblem
        If `queue` is none, or the device array has no queue or another context.
    """
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise InvalidProblem(f"queue must be a pyopencl.CommandQueue, not {queue!r}")
    if not is_device_array(array):
        return queue
    if array.queue is None and queue is None:
        raise InvalidProblem("the device array has no queue; use array.with_queue(queue)")
    if array.queue is not None and queue is not None and array.queue.context != queue.context:
        raise InvalidProblem("the device array and queue= belong to different contexts")
    return array.queue or queue


@dataclass(frozen=True)
class _View:
    """Shape, strides and offset of a strided array, counted in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, array: cl.array.Array, axis: int) -> _View:
        """Return the view of `array` with `axis` moved to the end."""
        itemsize = array.dtype.itemsize
        if array.offset % itemsize or any(stride % itemsize for stride in array.strides):
            raise InvalidProblem("strides and offset must be whole elements")
        order = [d for d in range(array.ndim) if d != axis] + [axis]
        return cls(
            tuple(array.shape[d] for d in order),
            tuple(array.strides[d] // itemsize for d in order),
            array.offset // itemsize,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the elements lie in C order from the start of the buffer."""
        return self.offset == 0 and self.strides == _c_strides(self.shape)


def _c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def _copy_plan(
    dtype: np.dtype[Any], source: _View, target: _View, wg_size: int = COPY_GROUP
) -> Plan:
    element = WORD_TYPES.get(dtype.itemsize)
    if element is None:
        raise InvalidProblem(f"cannot copy strided device arrays of dtype {dtype}")
    count = math.prod(source.shape)
    arguments: dict[str, Any] = {
        "source": "source",
        "target": "target",
        "count": np.uint64(count),
        "source_offset": np.int64(source.offset),
        "target_offset": np.int64(target.offset),
    }
    for d, size in enumerate(source.shape):
        arguments[f"shape_{d}"] = np.uint64(size)
        arguments[f"source_stride_{d}"] = np.int64(source.strides[d])
        arguments[f"target_stride_{d}"] = np.int64(target.strides[d])
    launch = Launch(
        template="common/copy.cl.mako",
        kernel="copy_strided",
        params={"ELEMENT_T": element, "NDIM": len(source.shape), "WG_SIZE": wg_size},
        global_size=(round_up(count, wg_size),),
        local_size=(wg_size,),
        arguments=arguments,
    )
    buffers = (
        Buffer("source", "in", source.shape, dtype),
        Buffer("target", "out", target.shape, dtype),
    )
    return Plan(buffers, (launch,) if count else ())


def _copy(
    queue: cl.CommandQueue | None,
    source: cl.array.Array,
    source_view: _View,
    target: cl.array.Array,
    target_view: _View,
) -> None:
    """Enqueue a strided copy between two device arrays."""
    assert queue is not None  # `queue_for` gives every device array one
    dtype = source.dtype
    session = session_of(queue)
    wg_size = min(COPY_GROUP, session.device.capabilities.max_work_group)
    executable = session.executable(
        ("copy", dtype, source_view, target_view),
        lambda: _copy_plan(dtype, source_view, target_view, wg_size),
    )
    execute(executable, {"source": source}, queue, {"target": target})


@dataclass(frozen=True)
class Rows:
    """An array seen as contiguous rows along one axis, and the way back.

    Parameters
    ----------
    data : array, shape (rows, n)
        C-contiguous; shares memory with the original where its layout allows.
    shape : tuple of int
        Shape of the original.
    axis : int
        The axis that became the last, counted from the front.
    """

    data: AnyArray
    shape: tuple[int, ...]
    axis: int

    @classmethod
    def of(cls, array: AnyArray, axis: int | None, queue: cl.CommandQueue | None = None) -> Rows:
        """Return `array` as rows along `axis`; None flattens it first.

        Raises
        ------
        InvalidProblem
            If the array has no such axis.
        """
        if axis is None:
            flat = array.reshape(-1) if not is_device_array(array) else _flatten(array, queue)
            return cls.of(flat, 0, queue)
        try:
            axis = operator.index(axis)
        except TypeError:
            raise InvalidProblem(f"axis must be a whole number, not {axis!r}") from None
        if array.ndim == 0 or not -array.ndim <= axis < array.ndim:
            raise InvalidProblem(
                f"axis {axis} is out of bounds for {counted(array.ndim, 'dimension')}"
            )
        axis %= array.ndim
        n = array.shape[axis]
        rows = math.prod(array.shape[d] for d in range(array.ndim) if d != axis)
        if not is_device_array(array):
            plain = np.ascontiguousarray(np.moveaxis(array, axis, -1)).reshape(rows, n)
            return cls(plain, array.shape, axis)
        view = _View.of(array, axis)
        if view.is_plain or array.size == 0:
            order = [d for d in range(array.ndim) if d != axis] + [axis]
            data = array.transpose(order).reshape(rows, n) if array.size else array
            return cls(data, array.shape, axis)
        data = note_fresh(new_array(queue, (rows, n), array.dtype, array.allocator))
        _copy(queue, array, view, data, _View(view.shape, _c_strides(view.shape), 0))
        return cls(data, array.shape, axis)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape[d] for d in range(len(self.shape)) if d != self.axis)

    @property
    def length(self) -> int:
        """How many elements a row has."""
        return self.shape[self.axis]

    def target(self, out: AnyArray | None, dtype: np.dtype[Any]) -> AnyArray | None:
        """Return `out` as rows that a kernel can write directly, or None if it cannot.

        It cannot if there is no `out`, if its layout is another, or if it shares
        memory with the data; `restore` then copies the result.

        Raises
        ------
        InvalidProblem
            If `out` has the wrong shape or dtype, or is on the other side.
        """
        if out is None:
            return None
        check_out(out, self.data, self.shape, dtype)
        if self.axis != len(self.shape) - 1 or not out.size or not out.flags.c_contiguous:
            return None
        if not out.dtype.isnative:
            return None
        if is_device_array(out):
            if out.offset or out.base_data == self.data.base_data:
                return None
        elif np.may_share_memory(out, self.data):
            return None
        return out.reshape(self.count, self.length)

    def restore(
        self, result: AnyArray, out: AnyArray | None, queue: cl.CommandQueue | None = None
    ) -> AnyArray:
        """Return `result`, rows again, in the shape of the original, in `out` if given."""
        order = [d for d in range(len(self.shape)) if d != self.axis] + [self.axis]
        moved = tuple(self.shape[d] for d in order)
        if out is not None and self.target(out, result.dtype) is not None:
            return out  # the kernels wrote to it directly
        if not is_device_array(result):
            shaped = np.moveaxis(result.reshape(moved), -1, self.axis)
            if out is None:
                return np.ascontiguousarray(shaped)
            np.copyto(out, shaped)
            return out
        if out is None:
            if order == sorted(order):
                return result.reshape(self.shape)
            out = note_fresh(new_array(queue, self.shape, result.dtype, result.allocator))
        if result.size:
            _copy(queue, result, _View(moved, _c_strides(moved), 0), out, _View.of(out, self.axis))
        return out


def check_out(out: Any, beside: AnyArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise `InvalidProblem` unless `out` can take a result beside the input `beside`."""
    if is_device_array(out) != is_device_array(beside):
        raise InvalidProblem("out must be on the same side as the input, host or device")
    if is_device_array(out):
        if out.context != beside.context:
            raise InvalidProblem("the input and out belong to different contexts")
    elif not isinstance(out, np.ndarray):
        raise InvalidProblem(f"out must be an array, not {type(out).__name__}")
    elif not out.flags.writeable:
        raise InvalidProblem("out is read-only")
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise InvalidProblem(
            f"out must have shape {shape} and dtype {dtype}, not {tuple(out.shape)} and {out.dtype}"
        )


def _flatten(array: AnyArray, queue: cl.CommandQueue | None) -> AnyArray:
    if array.ndim == 0:
        return array.reshape(1)
    rows = Rows.of(array, array.ndim - 1, queue)
    return rows.data.reshape(array.size)


def is_plain(array: AnyArray) -> bool:
    """Return whether a kernel can take `array` as it is: C order, from its buffer's start."""
    if not array.size:
        return True
    if not is_device_array(array):
        return bool(array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative)
    return array.ndim == 0 or _View.of(array, array.ndim - 1).is_plain


def contiguous(array: AnyArray, queue: cl.CommandQueue | None = None) -> AnyArray:
    """Return a plain array with the elements of `array`: itself if it is plain, else a copy."""
    if is_plain(array):
        return array
    if not is_device_array(array):
        return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
    copy = note_fresh(new_array(queue, array.shape, array.dtype, array.allocator))
    assign(copy, array, queue)
    return copy


def assign(target: AnyArray, source: AnyArray, queue: cl.CommandQueue | None = None) -> None:
    """Copy `source` to `target`, of any strides, on the same side and without overlap."""
    if not is_device_array(target):
        np.copyto(target, source)
    elif target.size:
        axis = target.ndim - 1
        _copy(queue, source, _View.of(source, axis), target, _View.of(target, axis))


def reshaped(
    array: AnyArray, shape: tuple[int, ...], queue: cl.CommandQueue | None = None
) -> AnyArray:
    """Return a plain array in another shape of the same size, without a copy."""
    if not is_device_array(array) or array.size:
        return array.reshape(shape)
    return note_fresh(new_array(queue, shape, array.dtype, array.allocator))


def to_device(array: np.ndarray[Any, Any], queue: cl.CommandQueue | None) -> cl.array.Array:
    """Return a device array with a copy of a host array, which is not waited for."""
    if not array.size:
        return cl.array.empty(queue, array.shape, array.dtype)
    assert queue is not None  # `queue_for` gives every device array one
    return with_room(lambda: cl.array.to_device(queue, array, async_=True))


def direct_target(
    out: AnyArray | None,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    inputs: Sequence[AnyArray],
) -> AnyArray | None:
    """Return `out` if a kernel can write it directly: plain, and apart from all inputs.

    Parameters
    ----------
    out : array, optional
        What the user gave for the result.
    shape, dtype
        Those of the result.
    inputs : sequence of arrays
        All on one side.

    Raises
    ------
    InvalidProblem
        If `out` has another shape or dtype, or is on the other side.
    """
    if out is None:
        return None
    check_out(out, inputs[0], shape, dtype)
    if not out.size or not is_plain(out):
        return None
    if is_device_array(out):
        shared = any(out.base_data == array.base_data for array in inputs)
    else:
        shared = any(np.may_share_memory(out, array) for array in inputs)
    return None if shared else out
