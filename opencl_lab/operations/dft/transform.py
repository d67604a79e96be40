"""Transforms along one axis of arrays of either side: what `opencl_lab.fft` is made of."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl.array

from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operations.dft.around import conversion, mirror
from opencl_lab.operations.dft.operation import DFT, complex_dtype
from opencl_lab.operations.dft.problem import DftProblem, real_dtype, scale_of
from opencl_lab.runtime.arrays import (
    AnyArray,
    Rows,
    as_array,
    assign,
    check_out,
    contiguous,
    is_device_array,
    native,
    queue_for,
)
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.kept import new_array
from opencl_lab.runtime.recording import note_fresh
from opencl_lab.runtime.session import session_of
from opencl_lab.words import counted

__all__ = [
    "as_complex",
    "as_real",
    "axes_and_lengths",
    "axis_of",
    "complex_axis",
    "converted",
    "empty",
    "finish",
    "from_real",
    "prepared",
    "resized",
    "rolled",
    "to_real",
    "whole",
    "whole_spectrum",
    "without_warnings",
]


def prepared(a: Any, queue: Any) -> tuple[AnyArray, Any]:
    """Return `a` as an array in the machine's byte order, and its queue."""
    array = native(as_array(a))
    complex_dtype(array.dtype)  # refuses what is no number
    return _on_queue(array, queue)


def _on_queue(array: AnyArray, queue: Any) -> tuple[AnyArray, Any]:
    """Return an array that has a queue if it is on a device, and the queue."""
    queue = queue_for(array, queue)
    if is_device_array(array) and array.queue is None:
        array = array.with_queue(queue)
    return array, queue


def as_complex(array: AnyArray) -> AnyArray:
    """Return `array` in the complex type of its precision."""
    return converted(array, complex_dtype(array.dtype))


def converted(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return `array` in `dtype`: itself if it has that type.

    Raises
    ------
    InvalidConfig
        If it is on a device that has no double precision and this takes it.
    """
    if array.dtype == dtype:
        return array
    if not is_device_array(array):
        return array.astype(dtype)
    double = dtype in (np.float64, np.complex128)
    if double and not session_of(array.queue).device.capabilities.fp64:
        raise InvalidConfig(
            f"the device has no double precision, in which {array.dtype} is transformed; convert "
            "it to float32"
        )
    plain = contiguous(array, array.queue)
    if plain.dtype.kind == "c":
        return without_warnings(lambda: plain.astype(dtype))
    if plain.dtype == np.float16:
        plain = _converted(plain, np.dtype(np.float32))
    return plain if plain.dtype == dtype else _converted(plain, dtype)


def _converted(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return a contiguous device array of real numbers in another type.

    Those of pyopencl take up to 25 times as long on CPUs.
    """
    if not array.size:
        return empty(array, array.shape, dtype, array.queue)
    session = session_of(array.queue)
    executable = session.executable(
        ("convert", array.shape, array.dtype, dtype),
        lambda: conversion(array.shape, array.dtype, dtype, session.device),
    )
    return execute(executable, {"source": array}, array.queue).outputs["target"]


def without_warnings(work: Callable[[], AnyArray]) -> AnyArray:
    """Do what makes pyopencl build a kernel of its own, whose log is no warning to a user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyopencl.CompilerWarning)
        return work()


def as_real(array: AnyArray) -> AnyArray:
    """Return real `array` in float16, float32 or float64."""
    if array.dtype.kind == "c":
        raise InvalidProblem("a real transform takes real numbers, not complex ones; use fft")
    if array.dtype == np.float16:
        return array  # kernels read it as it is stored
    return converted(array, real_dtype(complex_dtype(array.dtype)))


def axis_of(array: AnyArray, axis: int) -> int:
    """Return `axis` counted from the front."""
    axis = whole(axis, "axis")
    if not -array.ndim <= axis < array.ndim:
        raise InvalidProblem(f"axis {axis} is out of bounds for {counted(array.ndim, 'dimension')}")
    return int(axis % array.ndim)


def axes_and_lengths(
    array: AnyArray, s: Sequence[int | None] | None, axes: Sequence[int] | None
) -> tuple[list[int], list[int | None]]:
    """Return axes, counted from the front, and their lengths, under NumPy's rules.

    An axis may come more than once. A length of -1 is that of the axis of `array`; None is that of
    the axis when its turn comes, or as many samples as a transform back makes of it by default.
    """
    for name, value in (("s", s), ("axes", axes)):
        if not (value is None or isinstance(value, (Sequence, np.ndarray))):
            raise InvalidProblem(f"{name} must be a sequence of whole numbers, not {value!r}")
    if axes is None:
        first = 0 if s is None else array.ndim - len(s)
        if first < 0:
            raise InvalidProblem(
                f"s has {counted(len(s or ()), 'length')} for {counted(array.ndim, 'dimension')}"
            )
        axes = range(first, array.ndim)
    order = [axis_of(array, axis) for axis in axes]
    if s is None:
        return order, [array.shape[axis] for axis in order]
    if len(s) != len(order):
        raise InvalidProblem(
            f"s has {counted(len(s), 'length')} for {counted(len(order), 'axis', 'axes')}"
        )
    lengths = [None if n is None else whole(n, "s") for n in s]
    return order, [array.shape[a] if n == -1 else n for n, a in zip(lengths, order, strict=True)]


def whole(number: Any, name: str) -> int:
    """Return a plain whole number, or say which argument is none, or is too large to be a size."""
    try:
        found = int(operator.index(number))  # NumPy's own and booleans count otherwise
    except TypeError:
        raise InvalidProblem(f"{name} must be a whole number, not {number!r}") from None
    if found >= 1 << 48:
        raise InvalidProblem(f"{name} is {found}: no memory holds so many samples")
    return found


def resized(array: AnyArray, n: int, axis: int, queue: Any) -> AnyArray:
    """Return `array` with `axis` cut, or filled with zeros, to length `n`."""
    if n < 1:
        raise InvalidProblem(f"a transform needs at least one sample, not {n}")
    have = array.shape[axis]
    if have == n:
        return array
    part = tuple(slice(min(n, have)) if d == axis else slice(None) for d in range(array.ndim))
    if have > n:
        return array[part]
    shape = tuple(n if d == axis else size for d, size in enumerate(array.shape))
    longer: AnyArray
    if not is_device_array(array):
        longer = np.zeros(shape, array.dtype)
        longer[part] = array
        return longer
    longer = pyopencl.array.zeros(queue, shape, array.dtype, allocator=array.allocator)
    if array.size:
        assign(longer[part], array, queue)
    return longer


def _run(problem: DftProblem, data: AnyArray, queue: Any) -> AnyArray:
    shape, _ = problem.signal
    run = DFT.run(problem, {"signal": data.reshape(shape)}, algorithm="fft", queue=queue)
    return run.outputs["spectrum"]


def empty(array: AnyArray, shape: tuple[int, ...], dtype: np.dtype[Any], queue: Any) -> AnyArray:
    """Return an array without values on the side where `array` is."""
    if is_device_array(array):
        return note_fresh(new_array(queue, shape, dtype, array.allocator))
    return np.empty(shape, dtype)


def complex_axis(
    array: AnyArray, n: int | None, axis: int, norm: str | None, inverse: bool, queue: Any
) -> AnyArray:
    """Transform complex numbers along one axis, wherever it lies, in one go."""
    axis = axis_of(array, axis)
    n = array.shape[axis] if n is None else whole(n, "n")
    scale = scale_of(n, norm, inverse)
    array = resized(array, n, axis, queue)
    if not array.size:
        return empty(array, array.shape, array.dtype, queue)
    batch, inner = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    problem = DftProblem(n, array.dtype, batch, inner, inverse, scale)
    return _run(problem, contiguous(array, queue), queue).reshape(array.shape)


def _real_axis(array: AnyArray, axis: int, problem: Any, queue: Any) -> AnyArray:
    """Transform along `axis` as rows; ``problem(rows)`` is the problem of so many rows."""
    rows = Rows.of(array, axis, queue)
    made = problem(rows.count)
    shape, dtype = made.spectrum
    length = shape[1]
    result = Rows(
        rows.data, tuple(length if d == axis else s for d, s in enumerate(array.shape)), axis
    )
    if not array.size:
        return empty(array, result.shape, dtype, queue)
    spectrum = _run(made, rows.data, queue).reshape(rows.count, length)
    return result.restore(spectrum, None, queue)


def from_real(array: AnyArray, n: int | None, axis: int, norm: str | None, queue: Any) -> AnyArray:
    """Transform real numbers along one axis to n // 2 + 1 frequencies."""
    axis = axis_of(array, axis)
    n = array.shape[axis] if n is None else whole(n, "n")
    scale = scale_of(n, norm, False)
    return _real_axis(
        resized(array, n, axis, queue),
        axis,
        lambda rows: DftProblem.of(n, array.dtype, rows, False, scale),
        queue,
    )


def to_real(array: AnyArray, n: int | None, axis: int, norm: str | None, queue: Any) -> AnyArray:
    """Transform frequencies along one axis to `n` real numbers."""
    axis = axis_of(array, axis)
    n = 2 * (array.shape[axis] - 1) if n is None else whole(n, "n")
    if n < 1:
        raise InvalidProblem(f"a transform needs at least one sample, not {n}")
    scale = scale_of(n, norm, True)
    samples = real_dtype(array.dtype)
    return _real_axis(
        resized(array, n // 2 + 1, axis, queue),
        axis,
        lambda rows: DftProblem.of(n, samples, rows, True, scale),
        queue,
    )


def whole_spectrum(
    halves: AnyArray, n: int, conjugate: bool, out: AnyArray | None, queue: Any
) -> AnyArray:
    """Return all n frequencies of rows of n // 2 + 1, or their conjugates, in `out` if given."""
    shape, dtype = (halves.shape[0], n), halves.dtype
    if is_device_array(halves) and halves.size:
        session = session_of(queue)
        executable = session.executable(
            ("mirror", shape, dtype, conjugate),
            lambda: mirror(n, shape[0], dtype, conjugate, session.device),
        )
        given = {} if out is None else {"whole": out}
        return execute(executable, {"half_rows": halves}, queue, given).outputs["whole"]
    whole = empty(halves, shape, dtype, queue) if out is None else out
    if halves.size:
        bins = halves.shape[1]
        lower, upper = halves, halves[:, n - bins : 0 : -1]
        whole[:, :bins], whole[:, bins:] = (
            (lower.conj(), upper) if conjugate else (lower, upper.conj())
        )
    return whole


def rolled(
    x: Any, axes: int | Sequence[int] | None, shift: Callable[[int], int], queue: Any
) -> AnyArray:
    """Return a copy with elements moved along axes by ``shift(length)``, around the ends."""
    given, queue = _on_queue(as_array(x), queue)
    array = given
    if axes is None:
        axes = range(array.ndim)
    elif not isinstance(axes, (Sequence, np.ndarray)):
        axes = (axes,)
    for axis in (axis_of(array, axis) for axis in axes):
        n = array.shape[axis]
        cut = -shift(n) % n if n else 0
        before, after = (
            tuple(part if d == axis else slice(None) for d in range(array.ndim))
            for part in (slice(cut), slice(cut, None))
        )
        back, front = (
            tuple(part if d == axis else slice(None) for d in range(array.ndim))
            for part in (slice(n - cut, None), slice(n - cut))
        )
        source, array = array, empty(array, array.shape, array.dtype, queue)
        if array.size:
            for target, part in ((front, after), (back, before)):
                assign(array[target], source[part], queue)
    return array.copy() if array is given else array


def finish(result: AnyArray, out: AnyArray | None, queue: Any) -> AnyArray:
    """Return `result`, in `out` if that is given."""
    if out is None:
        return result
    check_out(out, result, tuple(result.shape), result.dtype)
    assign(out, result, queue)
    return out
