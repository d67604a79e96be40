"""Functions that work alike on host and device arrays: copies, views, and checks of `out`."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from reprlib import repr as shown
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import whole_number
from opencl_lab.core.wording import counted
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.copies import Copy, View
from opencl_lab.runtime.freeing import memory_errors
from opencl_lab.runtime.results import PooledArray, block_of
from opencl_lab.runtime.session import new_array, session_of

MEMORY = (cl.MemoryObjectHolder, cl.SVMPointer)
"""Memory of OpenCL without a shape: buffers, images, shared virtual memory."""
AnyArray: TypeAlias = Any
"""A `numpy.ndarray` or a `pyopencl.array.Array`."""
HELD = 1 << 20
"""Bytes up to which an array on the host may be held a little longer than its copy takes."""
_copies: deque[cl.Event] = deque()


def axis_of(axis: Any, dimensions: int) -> int:
    """Return an axis as a non-negative number."""
    number = whole_number(axis, "axis")
    if not -dimensions <= number < dimensions:
        where = counted(dimensions, "dimension")
        raise InvalidProblem(f"axis {number} is out of bounds for {where}")
    return number % dimensions


def check_sides(**arrays: AnyArray) -> None:
    """Refuse a mixture of host arrays and device arrays."""
    if len(set(map(is_device_array, arrays.values()))) > 1:
        names = " and ".join(arrays)
        raise InvalidProblem(f"{names} must both be host arrays or both device arrays")


def pair_of(out: Any, first: str, second: str) -> tuple[AnyArray | None, AnyArray | None]:
    """Return the two arrays of `out`, or None twice; `first` and `second` name them in errors."""
    if out is None:
        return None, None
    if isinstance(out, (tuple, list)) and len(out) == 2:
        return out[0], out[1]
    raise InvalidProblem(f"out must be a pair of arrays, for the {first} and for the {second}")


def is_device_array(array: Any) -> bool:
    """Return whether `array` is a `pyopencl.array.Array`."""
    return isinstance(array, cl.array.Array)


def as_array(value: Any) -> AnyArray:
    """Return a device array as it is, and anything else as a NumPy array.

    Masked arrays, bare memory of OpenCL, and arrays on a device of another library, are refused.
    """
    if type(value) is np.ndarray or is_device_array(value):
        return value
    if isinstance(value, MEMORY):
        raise InvalidProblem(
            f"a {type(value).__name__} of pyopencl has neither shape nor dtype: pass "
            "pyopencl.array.Array(queue, shape, dtype, data=buffer)"
        )
    if isinstance(value, np.ndarray) and np.ma.is_masked(value):
        raise InvalidProblem(
            "masks are not supported: pass x.filled(value), or x.compressed(), which drops the "
            "masked elements"
        )
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidProblem(
                f"NumPy cannot read this {type(value).__name__} ({error}); copy it to the host"
            ) from error
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise InvalidProblem(f"{shown(value)} is no array: {error}") from error
    if array.dtype.kind in "OSU" and not array.ndim:
        raise InvalidProblem(f"an array or a sequence of numbers is needed, not {shown(value)}")
    return array


def plain_class(array: AnyArray) -> AnyArray:
    """Return a device array of a class that another library derived as one of pyopencl's class.

    It shares memory and events. Derived classes change what views and attributes are.
    """
    if not is_device_array(array) or type(array) in (cl.array.Array, PooledArray):
        return array
    plain = cl.array.Array.__new__(cl.array.Array)
    vars(plain).update(vars(array), nbytes=array.size * array.dtype.itemsize)
    return plain


def native(array: AnyArray) -> AnyArray:
    """Return `array` in native byte order, which device arrays always have."""
    if not is_device_array(array) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def check_out(
    out: Any, beside: AnyArray, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "out"
) -> None:
    """Raise `InvalidProblem` unless `out` fits a result and is where the input `beside` is.

    `name` is what the caller calls it.
    """
    if isinstance(out, MEMORY):
        as_array(out)  # says what to pass instead
    if is_device_array(out) != is_device_array(beside):
        raise InvalidProblem(f"{name} must be on the same side as the input, host or device")
    if is_device_array(out):
        if out.context != beside.context:
            raise InvalidProblem(f"the input and {name} belong to different contexts")
    elif not isinstance(out, np.ndarray):
        raise InvalidProblem(f"{name} must be an array, not {type(out).__name__}")
    elif not out.flags.writeable:
        raise InvalidProblem(f"{name} is read-only")
    if tuple(out.shape) != shape or out.dtype != dtype:
        raise InvalidProblem(
            f"{name} must have shape {shape} and dtype {dtype}, "
            f"not {tuple(out.shape)} and {out.dtype}"
        )


def shares_memory(one: AnyArray, other: AnyArray) -> bool:
    """Return whether two arrays on the same side may share memory or lie in one buffer."""
    if is_device_array(one):
        return bool(one.size and other.size and whole_buffer(one)[0] == whole_buffer(other)[0])
    return np.may_share_memory(one, other)


def whole_buffer(array: cl.array.Array) -> tuple[Any, int]:
    """Return the buffer of an array, the parent of a sub-buffer, and the array's offset in it."""
    memory = array.base_data
    if not isinstance(memory, cl.MemoryObjectHolder):  # shared virtual memory
        return memory, array.offset
    parent: Any = memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if parent is None:
        return memory, array.offset
    begin: Any = memory.get_info(cl.mem_info.OFFSET)
    return parent, begin + array.offset


def overlap(one: AnyArray, other: AnyArray) -> bool:
    """Return whether two arrays on the same side have a byte in common."""
    if not shares_memory(one, other):
        return False
    if is_device_array(one):
        one, other = np.asarray(_Places(one)), np.asarray(_Places(other))
    return bool(np.shares_memory(one, other))


class _Places:
    """The layout of a device array in its buffer, in the form that NumPy compares."""

    def __init__(self, array: cl.array.Array):
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(array.shape),
            "strides": tuple(array.strides),
            "typestr": f"|V{array.dtype.itemsize}",
            "data": ((1 << 20) + whole_buffer(array)[1], True),
        }


def is_plain(array: AnyArray) -> bool:
    """Return whether a kernel can use `array` directly: C order, at the start of its buffer."""
    if not array.size:
        return True
    if not is_device_array(array):
        return bool(array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative)
    return View.of(array).is_plain


def contiguous(array: AnyArray, call: Call) -> AnyArray:
    """Return `array` itself if it is plain, else a plain copy of it."""
    if is_plain(array):
        return array
    if not is_device_array(array):
        return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
    return copied(array, call)


def empty(beside: AnyArray, shape: tuple[int, ...], dtype: np.dtype[Any], call: Call) -> AnyArray:
    """Return an uninitialized array on the same side as `beside`."""
    if is_device_array(beside):
        return call.new_array(shape, dtype, beside.allocator)
    return np.empty(shape, dtype)


def copied(
    array: AnyArray,
    call: Call,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: np.dtype[Any] | None = None,
    conjugate: bool = False,
) -> AnyArray:
    """Return a new array with the elements of `array`; on a device it is in C order.

    A different `shape` has the same number of dimensions: longer axes are cut, shorter ones are
    padded with zeros. On a device, `dtype` is that of `array`, float32, float64, complex64 or
    complex128; for integers also int64. With `conjugate`, the result on a device is complex.
    """
    shape = array.shape if shape is None else shape
    dtype = array.dtype if dtype is None else dtype
    if is_device_array(array):
        made = empty(array, shape, dtype, call)
        if made.size:
            source = View.of(array).cut(shape)
            copy = Copy(source, View.dense(shape), array.dtype, dtype, conjugate)
            copy.enqueue(call, array, made)
        return made
    part = array[tuple(map(slice, shape))] if array.ndim else array
    if part.shape == shape:
        made = part.astype(dtype)
    else:
        made = np.zeros(shape, dtype)
        made[tuple(map(slice, part.shape))] = part
    return np.conjugate(made, out=made) if conjugate else made


def fitted(
    array: AnyArray,
    call: Call,
    n: int,
    axis: int,
    dtype: np.dtype[Any],
    conjugate: bool = False,
) -> AnyArray:
    """Return `array` in `dtype` with `axis` cut, or padded with zeros, to length `n`.

    The result is a view where possible; else see `copied`.
    """
    have = array.shape[axis]
    if n <= have and dtype == array.dtype and not conjugate:
        part = tuple(slice(n) if d == axis else slice(None) for d in range(array.ndim))
        return array if n == have else array[part]
    shape = tuple(n if d == axis else size for d, size in enumerate(array.shape))
    return copied(array, call, shape=shape, dtype=dtype, conjugate=conjugate)


def assign(
    target: AnyArray,
    source: AnyArray,
    call: Call,
    *,
    conjugate: bool = False,
) -> None:
    """Copy `source` to `target`, of the same shape, with any strides, on the same side.

    They do not share memory. With `conjugate`, complex conjugates are copied.
    """
    if not is_device_array(target):
        np.conjugate(source, out=target) if conjugate else np.copyto(target, source)
    elif target.size:
        copy = Copy(View.of(source), View.of(target), source.dtype, target.dtype, conjugate)
        copy.enqueue(call, source, target)


def roll(target: AnyArray, source: AnyArray, shifts: Sequence[int], call: Call) -> None:
    """Copy `source` to `target`, shifted cyclically along each axis, as `numpy.roll` does."""
    if is_device_array(target):
        if target.size:
            views = View.of(source), View.of(target)
            Copy(*views, source.dtype, target.dtype, shifts=tuple(shifts)).enqueue(
                call, source, target
            )
        return
    parts = []
    for shift, n in zip(shifts, source.shape, strict=True):
        s = shift % n if n else 0
        pairs = ((slice(s, None), slice(n - s)), (slice(s), slice(n - s, None)))
        parts.append(pairs if s else pairs[:1])
    for chosen in itertools.product(*parts):
        target[tuple(to for to, _ in chosen)] = source[tuple(of for _, of in chosen)]


def beginning(array: AnyArray, count: int, queue: cl.CommandQueue) -> AnyArray:
    """Return the first elements of a plain one-dimensional array that has no other reference.

    They stay where they are if they fill half of the memory, else a copy frees the rest. In memory
    of a pool, see `PooledArray.beginning`.
    """
    if count == array.size:
        return array
    if isinstance(array, PooledArray) and array.is_pooled:
        return array.beginning(count)
    if 2 * count >= array.size:
        return array[:count]
    if not is_device_array(array):
        return array[:count].copy()
    made = new_array(queue, (count,), array.dtype, array.allocator)
    with session_of(queue).exclusive(queue):
        event = cl.enqueue_copy(
            queue,
            block_of(made),
            array.base_data,
            byte_count=count * array.dtype.itemsize,
            wait_for=array.events,
        )
    made.events = [event]
    return made


def reshaped(array: AnyArray, shape: tuple[int, ...], call: Call) -> AnyArray:
    """Return a plain array in another shape of the same size, without a copy."""
    if not is_device_array(array) or array.size:
        return array.reshape(shape)
    return empty(array, shape, array.dtype, call)


def to_device(array: np.ndarray[Any, Any], queue: cl.CommandQueue) -> cl.array.Array:
    """Copy a host array, contiguous in either order, to a new device array, without waiting."""
    made = new_array(
        queue, array.shape, array.dtype, order="C" if array.flags.c_contiguous else "F"
    )
    if array.size:
        with memory_errors(), session_of(queue).exclusive(queue):
            copied = cl.enqueue_copy(queue, block_of(made), array, is_blocking=False)
        made.events = [copied]
        if array.nbytes <= HELD:
            _hold(copied)
    return made


def _hold(copied: cl.Event) -> None:
    """Hold the event of a copy while it is pending: where it is dropped, pyopencl would wait.

    All threads would, also one that is to end what the copy waits for.
    """
    _copies.append(copied)
    with suppress(IndexError):  # another thread does this, too
        for _ in range(len(_copies)):
            oldest = _copies.popleft()
            if oldest.command_execution_status > cl.command_execution_status.COMPLETE:
                _copies.append(oldest)


def positions(begin: int, end: int, queue: cl.CommandQueue) -> cl.array.Array:
    """Return the integers from `begin` up to, and without, `end` on a device, as int64."""
    return cl.array.arange(queue, begin, end, dtype=np.int64)


def direct_target(
    out: AnyArray | None, shape: tuple[int, ...], dtype: np.dtype[Any], inputs: Sequence[AnyArray]
) -> AnyArray | None:
    """Return `out` if a kernel can write to it directly: plain, sharing no memory with inputs.

    An `out` of the wrong shape, dtype or side is refused.
    """
    if out is None:
        return None
    check_out(out, inputs[0], shape, dtype)
    if not out.size or not is_plain(out):
        return None
    return None if any(shares_memory(out, array) for array in inputs) else out
