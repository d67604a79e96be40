"""The public functions for convolution and correlation of two arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyopencl.clmath

from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.kernels import C_TYPES, lacks_type
from opencl_lab.core.options import whole_number
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.signal.spectra import by_transforms
from opencl_lab.ops.signal.sums import sums
from opencl_lab.runtime.arrays import AnyArray, as_array, copied, is_device_array, native, to_device
from opencl_lab.runtime.call import Call, queue_for
from opencl_lab.runtime.exchange import to_host
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.session import queue_or_default, session_of
from opencl_lab.runtime.waiting import WaitFor, after_events

Part: TypeAlias = Literal["full", "same", "valid"]
Method: TypeAlias = Literal["auto", "direct", "fft"]
Axes: TypeAlias = int | Sequence[int] | None

EXACT = 2**40
"""Sums of integers up to which transforms in float64 surely find the right one."""
DIRECT = 2.0
"""Products that take as long as what transforms do for each value and each doubling of all."""
LAUNCHES = 1 << 16
"""Products that take as long as the launches of the transforms."""


@after_events
def fftconvolve(
    in1: Any,
    in2: Any,
    mode: Part = "full",
    axes: Axes = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Convolve two arrays by Fourier transforms; see `scipy.signal.fftconvolve`.

    Parameters
    ----------
    in1, in2 : array_like or pyopencl.array.Array
        With the same number of dimensions, any strides. If one is on the device, the other one is
        copied there.
    mode : {"full", "same", "valid"}
        What is returned: all, as much as `in1` in the middle of that, or where both overlap wholly.
    axes : int or sequence of int, optional
        Default: all. Along others, arrays are multiplied, and an axis of length 1 is repeated.
    queue : pyopencl.CommandQueue, optional
        Where to convolve; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        float32 or complex64 for two arrays of float16, float32 and complex64, else float64 or
        complex128; an empty array for one. Mere products are in the common type. For device arrays
        the work is enqueued, without waiting.

    Raises
    ------
    InvalidProblem
        For other types, shapes that do not match, an unknown mode or wrong axes.
    """
    return _convolved(in1, in2, mode, axes, queue, device, in_blocks=False)


@after_events
def oaconvolve(
    in1: Any,
    in2: Any,
    mode: Part = "full",
    axes: Axes = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Convolve two arrays of different lengths in blocks; see `scipy.signal.oaconvolve`.

    Along each axis the longer array is cut into blocks, whose length follows that of the shorter
    one. SciPy adds where the results overlap, here blocks overlap; parameters, results and errors
    are those of `fftconvolve`.
    """
    return _convolved(in1, in2, mode, axes, queue, device, in_blocks=True)


@after_events
def correlate(
    in1: Any,
    in2: Any,
    mode: Part = "full",
    method: Method = "auto",
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Correlate two arrays, of which the second one is conjugated; see `scipy.signal.correlate`.

    Parameters
    ----------
    in1, in2, mode, queue, device, wait_for
        As for `fftconvolve`.
    method : {"auto", "direct", "fft"}
        By the definition, by Fourier transforms, or by what probably takes less time. Integers are
        summed exactly by ``"direct"`` and modulo the range of their type; ``"fft"`` rounds, and
        ``"auto"`` takes it only where that makes no difference for any values.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        In the common type of both by NumPy's rules, but float32 in place of float16.

    Raises
    ------
    InvalidProblem
        As for `fftconvolve`, and for empty arrays.
    """
    a, b, on_host = _sent(in1, in2, queue, device)
    dtype = np.result_type(_single(a.dtype), _single(b.dtype))
    if method not in ("auto", "direct", "fft"):
        raise InvalidProblem(f"method must be auto, direct or fft, not {method!r}")
    if not (a.size and b.size):
        raise InvalidProblem("correlate takes no empty arrays")
    _check_overlap(a, b, mode, range(a.ndim))
    direct = method == "direct" or not a.ndim or (method == "auto" and _is_direct(a, b, dtype))
    if direct or dtype.kind not in "biu":
        result = _correlated(a, b, mode=mode, direct=direct, queue=queue)
    else:
        result = _correlated(a, b, mode=mode, direct=False, queue=queue)
        with session_of(result.queue).exclusive(result.queue):
            rounded = pyopencl.clmath.rint(result)
            if dtype.kind == "b":
                result = (rounded != 0).view(dtype)
            elif dtype.itemsize < 8:  # large sums wrap around, as in "direct"
                result = rounded.astype(np.int64).astype(dtype)
            else:
                result = rounded.astype(dtype)
    return to_host(result)[()] if on_host else result  # a number if it has no dimensions


def _sent(in1: Any, in2: Any, queue: Any, device: DeviceSpec) -> tuple[AnyArray, AnyArray, bool]:
    """Return both arrays on the device, and whether they were on the host."""
    arrays = [native(as_array(array)) for array in (in1, in2)]
    there = [array for array in arrays if is_device_array(array)]
    where = queue_or_default(queue_for(there[0] if there else None, queue, device))
    for array in arrays:
        if array.dtype.name not in C_TYPES:
            raise InvalidProblem(f"an array of numbers is needed, not of dtype {array.dtype}")
    if arrays[0].ndim != arrays[1].ndim:
        raise InvalidProblem("in1 and in2 should have the same number of dimensions")
    for place, array in enumerate(arrays):
        if not is_device_array(array):
            arrays[place] = to_device(np.asarray(array, order="C"), where)
        elif array.queue is None:
            arrays[place] = array.with_queue(where)
    a, b = arrays
    return a, b, not there


def _single(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which numbers are computed with: not half precision."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _spectral(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which numbers are transformed."""
    return np.dtype(np.float64) if dtype.kind in "biu" else _single(dtype)


def _convolved(
    in1: Any, in2: Any, mode: Any, axes: Any, queue: Any, device: DeviceSpec, *, in_blocks: bool
) -> AnyArray:
    a, b, on_host = _sent(in1, in2, queue, device)
    chosen = _axes(axes, a.ndim) if a.ndim else ()
    if not (a.size and b.size):
        empty = np.empty(0)
        return empty if on_host else to_device(empty, a.queue)
    chosen = tuple(d for d in chosen if a.shape[d] != 1 and b.shape[d] != 1)
    for d in set(range(a.ndim)) - set(chosen):
        if a.shape[d] != b.shape[d] and 1 not in (a.shape[d], b.shape[d]):
            raise InvalidProblem(f"incompatible shapes for in1 and in2: {a.shape} and {b.shape}")
    if _check_overlap(a, b, mode, chosen):
        a, b = b, a
    result = _transformed(a, b, mode=mode, axes=chosen, in_blocks=in_blocks, queue=queue)
    return to_host(result)[()] if on_host else result  # a number if it has no dimensions


def _axes(axes: Any, dimensions: int) -> tuple[int, ...]:
    """Return axes as SciPy takes them: each once, and none too large."""
    if axes is None:
        return tuple(range(dimensions))
    several = axes if isinstance(axes, (Sequence, np.ndarray)) else [axes]
    found = [whole_number(axis, "axes") for axis in several]
    if not found:
        raise InvalidProblem("when provided, axes cannot be empty")
    if any(not -dimensions <= axis < dimensions for axis in found):
        raise InvalidProblem("axes exceeds dimensionality of input")
    found = [axis % dimensions for axis in found]
    if len(set(found)) < len(found):
        raise InvalidProblem("all axes must be unique")
    return tuple(found)


def _check_overlap(a: AnyArray, b: AnyArray, mode: Any, axes: Sequence[int]) -> bool:
    """Check the mode; return whether, for ``"valid"``, `b` is the larger one."""
    if mode not in ("full", "same", "valid"):
        raise InvalidProblem(f"mode must be full, same or valid, not {mode!r}")
    if mode != "valid":
        return False
    larger = all(a.shape[d] >= b.shape[d] for d in axes)
    if not larger and not all(b.shape[d] >= a.shape[d] for d in axes):
        raise InvalidProblem(
            "for mode 'valid', one must be at least as large as the other in every dimension"
        )
    return not larger


def _part(
    a: AnyArray, b: AnyArray, mode: Part, axes: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where the part of a convolution that is returned begins, and its shape."""
    begins, shape = [], []
    for d, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        full = n + m - 1 if d in axes else max(n, m)
        size = full
        if mode == "same":
            size = n
        elif mode == "valid" and d in axes:
            size = max(n, m) - min(n, m) + 1
        begins.append((full - size) // 2)
        shape.append(size)
    return tuple(begins), tuple(shape)


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest integer of a type."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _is_direct(a: AnyArray, b: AnyArray, dtype: np.dtype[Any]) -> bool:
    """Return whether sums by the definition are the better method."""
    if dtype.kind in "biu":  # transforms take float64
        largest = [max(map(abs, _limits(x.dtype))) for x in (a, b)]
        if lacks_type(session_of(a.queue).device, np.float64):
            return True
        if largest[0] * largest[1] * min(a.size, b.size) > EXACT:
            return True
    pairs = list(zip(a.shape, b.shape, strict=True))
    full = math.prod(n + m - 1 for n, m in pairs)
    products = full * math.prod(map(min, pairs))
    return bool(products <= LAUNCHES + DIRECT * full * math.log2(full + 1))


@replayed()
def _transformed(
    call: Call,
    a: AnyArray,
    b: AnyArray,
    *,
    mode: Part,
    axes: tuple[int, ...],
    in_blocks: bool,
    queue: Any,
) -> AnyArray:
    """Return a part of a convolution of device arrays by transforms along axes."""
    call.use(a, queue)
    call.check(b)
    begins, shape = _part(a, b, mode, axes)
    if not axes:  # as SciPy has it, in the common type
        dtype = np.result_type(_single(a.dtype), _single(b.dtype))
        product = sums(call, _floating(call, a, dtype), _floating(call, b, dtype), dtype)
        return _cut(call, product, begins, shape)
    dtype = np.result_type(_spectral(a.dtype), _spectral(b.dtype))
    _check_type(call, a, b, dtype)
    return _cut(call, by_transforms(call, a, b, dtype, axes, in_blocks), begins, shape)


@replayed()
def _correlated(
    call: Call, a: AnyArray, b: AnyArray, *, mode: Part, direct: bool, queue: Any
) -> AnyArray:
    """Return a part of a correlation of device arrays."""
    call.use(a, queue)
    call.check(b)
    axes = tuple(range(a.ndim))
    begins, shape = _part(a, b, mode, axes)
    dtype = np.result_type(_single(a.dtype), _single(b.dtype))
    conjugate = b.dtype.kind == "c"
    reversed_b = b[(slice(None, None, -1),) * b.ndim] if b.ndim else b
    if direct:
        a, reversed_b = (_floating(call, x, _single(x.dtype)) for x in (a, reversed_b))
        how: dict[str, Any] = {"axes": axes, "shape": shape, "starts": begins}
        return sums(call, a, reversed_b, dtype, **how, conjugate=conjugate)
    dtype = _spectral(dtype)
    _check_type(call, a, b, dtype)
    if conjugate:
        reversed_b = copied(reversed_b, call, conjugate=True)
    return _cut(call, by_transforms(call, a, reversed_b, dtype, axes), begins, shape)


def _check_type(call: Call, a: AnyArray, b: AnyArray, dtype: np.dtype[Any]) -> None:
    """Refuse transforms in a type that the device lacks, before anything is built."""
    lacking = lacks_type(call.device, dtype)
    if lacking:
        raise InvalidConfig(
            f"{lacking}, in which {a.dtype} and {b.dtype} are transformed; "
            "convert them to float32 or complex64"
        )


def _floating(call: Call, array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return an array of half precision in `dtype`; all others are read as they are."""
    return copied(array, call, dtype=dtype) if array.dtype == np.float16 else array


def _cut(call: Call, array: AnyArray, begins: Sequence[int], shape: tuple[int, ...]) -> AnyArray:
    if tuple(array.shape) == shape:
        return array
    kept = (slice(begin, begin + size) for begin, size in zip(begins, shape, strict=True))
    return copied(array[tuple(kept)], call)
