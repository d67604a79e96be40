"""Transforms of host or device arrays along one axis, from which `opencl_lab.fft` is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.options import whole_number
from opencl_lab.core.wording import counted
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.passes.rows import mirror
from opencl_lab.ops.fft.problem import DftProblem, complex_dtype, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER, FAST
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    axis_of,
    check_out,
    contiguous,
    copied,
    direct_target,
    empty,
    fitted,
    is_device_array,
    native,
    roll,
    shares_memory,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.session import session_of


def prepared(call: Call, a: Any, queue: Any = None, device: DeviceSpec = None) -> AnyArray:
    """Return `a` as an array in native byte order; the call then works on its queue.

    (What `opencl_lab.prepare` makes is something else.)
    """
    array = native(as_array(a))
    complex_dtype(array.dtype)  # refuses values that are not numbers
    return _with_queue(call, array, queue, device)


def _with_queue(call: Call, array: AnyArray, queue: Any, device: DeviceSpec) -> AnyArray:
    """Return the array; one on a device has a queue then."""
    call.use(array, queue, device)
    if is_device_array(array) and array.queue is None:
        array = array.with_queue(call.queue)
    return array


def complex_type(array: AnyArray) -> np.dtype[Any]:
    """Return the complex type in which `array` is transformed on its device."""
    return _possible(array, complex_dtype(array.dtype))


def real_type(array: AnyArray) -> np.dtype[Any]:
    """Return the type in which real `array` is transformed: float16, float32 or float64."""
    if array.dtype.kind == "c":
        raise InvalidProblem("a real transform takes real numbers, not complex ones; use fft")
    if array.dtype == np.float16:
        return np.dtype(np.float16)  # kernels read it directly
    return _possible(array, real_dtype(complex_dtype(array.dtype)))


def _possible(array: AnyArray, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype`; refuse double precision if `array` is on a device without it."""
    double = dtype != array.dtype and dtype in (np.float64, np.complex128)
    if double and is_device_array(array) and not session_of(array.queue).device.capabilities.fp64:
        raise InvalidConfig(
            f"the device has no double precision, in which {array.dtype} is transformed; convert "
            "it to float32"
        )
    return dtype


def converted(array: AnyArray, dtype: np.dtype[Any], call: Call) -> AnyArray:
    """Return `array` in `dtype`: itself if it has that type."""
    if array.dtype == dtype:
        return array
    return copied(array, call, dtype=_possible(array, dtype))


def axes_and_lengths(
    array: AnyArray, s: Sequence[int | None] | None, axes: Sequence[int] | None
) -> tuple[list[int], list[int | None]]:
    """Return non-negative axes and their lengths, by NumPy's rules.

    An axis may occur more than once. A length of -1 becomes the axis's length in `array`. None is
    the length when the axis is transformed, or the default length of an inverse real transform.
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
    order = [axis_of(axis, array.ndim) for axis in axes]
    if s is None:
        return order, [array.shape[axis] for axis in order]
    if len(s) != len(order):
        raise InvalidProblem(
            f"s has {counted(len(s), 'length')} for {counted(len(order), 'axis', 'axes')}"
        )
    lengths = [None if n is None else whole(n, "s") for n in s]
    return order, [array.shape[a] if n == -1 else n for n, a in zip(lengths, order, strict=True)]


def last_first(
    axes: Sequence[int], lengths: Sequence[int | None], out: AnyArray | None
) -> Iterator[tuple[int, int | None, AnyArray | None]]:
    """Yield each axis, its length, and the array for its results, the last axis first.

    That array is `out` for the first axis, which is transformed last, and None for the others.
    """
    outs = [None] * (len(axes) - 1) + [out]
    return zip(reversed(axes), reversed(lengths), outs, strict=True)


def whole(number: Any, name: str) -> int:
    """Return an argument as an `int`; refuse other types and numbers too large for a size."""
    found = whole_number(number, name)
    if found >= 1 << 48:
        raise InvalidProblem(f"{name} is {found}: no memory holds so many samples")
    return found


def _samples(n: int) -> int:
    """Return the length of a transform; refuse zero and less."""
    if n < 1:
        raise InvalidProblem(f"a transform needs at least one sample, not {n}")
    return n


def _run(problem: DftProblem, data: AnyArray, call: Call, target: AnyArray | None) -> AnyArray:
    """Transform contiguous data, into `target` if given."""
    shape, _ = problem.signal
    out = None if target is None else target.reshape(problem.spectrum[0])
    run = DFT_SOLVER.run(
        problem,
        {"signal": data.reshape(shape)},
        algorithm=FAST,
        call=call,
        out={"spectrum": out},
    )
    return run.outputs["spectrum"]


def complex_axis(
    array: AnyArray,
    n: int | None,
    axis: int,
    norm: str | None,
    inverse: bool,
    call: Call,
    out: AnyArray | None = None,
    *,
    conjugate: bool = False,
) -> AnyArray:
    """Transform numbers, or their conjugates, along one axis, wherever it lies, in one go."""
    axis = axis_of(axis, array.ndim)
    n = array.shape[axis] if n is None else whole(n, "n")
    scale = scale_of(n, norm, inverse)
    array = fitted(array, call, _samples(n), axis, complex_type(array), conjugate)
    target = direct_target(out, array.shape, array.dtype, (array,))
    if not array.size:
        return finish(empty(array, array.shape, array.dtype, call), out, call)
    batch, inner = math.prod(array.shape[:axis]), math.prod(array.shape[axis + 1 :])
    problem = DftProblem(n, array.dtype, batch, inner, inverse, scale)
    result = _run(problem, contiguous(array, call), call, target)
    return finish(result.reshape(array.shape), out, call) if target is None else out


def _real_axis(
    rows: Rows, problem: DftProblem, call: Call, out: AnyArray | None = None
) -> AnyArray:
    """Transform rows to or from real numbers, and return the result in the shape of the array."""
    spectral, dtype = problem.spectrum
    length = spectral[1]
    shape = tuple(length if d == rows.axis else size for d, size in enumerate(rows.shape))
    result = Rows(rows.data, shape, rows.axis)
    if not rows.data.size:
        return finish(empty(rows.data, shape, dtype, call), out, call)
    spectrum = _run(problem, rows.data, call, result.target(out, dtype))
    return result.restore(spectrum.reshape(rows.count, length), out, call)


def from_real(
    array: AnyArray,
    n: int | None,
    axis: int,
    norm: str | None,
    call: Call,
    out: AnyArray | None = None,
) -> AnyArray:
    """Transform real numbers along one axis to n // 2 + 1 frequencies."""
    dtype = real_type(array)
    axis = axis_of(axis, array.ndim)
    n = array.shape[axis] if n is None else whole(n, "n")
    scale = scale_of(n, norm, False)
    rows = Rows.of(array, axis, call, length=_samples(n), dtype=dtype)
    return _real_axis(rows, DftProblem.of(n, dtype, rows.count, False, scale), call, out)


def to_real(
    array: AnyArray,
    n: int | None,
    axis: int,
    norm: str | None,
    call: Call,
    out: AnyArray | None = None,
    *,
    conjugate: bool = False,
) -> AnyArray:
    """Transform frequencies, or their conjugates, along one axis to `n` real numbers."""
    dtype = complex_type(array)
    axis = axis_of(axis, array.ndim)
    n = _samples(2 * (array.shape[axis] - 1) if n is None else whole(n, "n"))
    scale = scale_of(n, norm, True)
    rows = Rows.of(array, axis, call, length=n // 2 + 1, dtype=dtype, conjugate=conjugate)
    problem = DftProblem.of(n, real_dtype(dtype), rows.count, True, scale)
    return _real_axis(rows, problem, call, out)


def whole_spectrum(
    halves: AnyArray, n: int, conjugate: bool, out: AnyArray | None, call: Call
) -> AnyArray:
    """Return rows of all n frequencies, or conjugates, from n // 2 + 1; in `out` if given."""
    shape, dtype = (halves.shape[0], n), halves.dtype
    if not halves.size:
        return empty(halves, shape, dtype, call) if out is None else out
    executable = call.session.executable(
        ("mirror", shape, dtype, conjugate),
        lambda: mirror(n, shape[0], dtype, conjugate, call.device),
    )
    given = {} if out is None else {"whole": out}
    return call.execute(executable, {"half_rows": halves}, given).outputs["whole"]


def rolled(
    call: Call,
    x: Any,
    axes: int | Sequence[int] | None,
    shift: Callable[[int], int],
    out: AnyArray | None,
    queue: Any,
    device: DeviceSpec,
) -> AnyArray:
    """Return a copy shifted cyclically along axes by ``shift(length)``."""
    array = _with_queue(call, as_array(x), queue, device)
    if axes is None:
        axes = range(array.ndim)
    elif not isinstance(axes, (Sequence, np.ndarray)):
        axes = (axes,)
    shifts = [0] * array.ndim
    for axis in (axis_of(axis, array.ndim) for axis in axes):
        shifts[axis] += shift(array.shape[axis])
    if out is not None:
        check_out(out, array, tuple(array.shape), array.dtype)
    apart = out is not None and not shares_memory(out, array)
    made = out if apart else empty(array, array.shape, array.dtype, call)
    roll(made, array, shifts, call)
    return made if made is out else finish(made, out, call)


def finish(
    result: AnyArray, out: AnyArray | None, call: Call, *, conjugate: bool = False
) -> AnyArray:
    """Return `result`, or its conjugate, in `out` if given."""
    if out is None:
        return copied(result, call, conjugate=True) if conjugate else result
    check_out(out, result, tuple(result.shape), result.dtype)
    assign(out, result, call, conjugate=conjugate)
    return out
