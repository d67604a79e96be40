"""Applications of transforms: convolution and power spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.fft import rfftfreq

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import checked
from opencl_lab.core.wording import counted
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.functions.fourier import rfft
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.passes.factors import next_smooth
from opencl_lab.ops.fft.passes.rows import pointwise_product
from opencl_lab.ops.fft.problem import complex_dtype
from opencl_lab.ops.fft.transform import (
    complex_axis,
    converted,
    finish,
    from_real,
    prepared,
    real_type,
    to_real,
)
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    axis_of,
    broadcast,
    check_sides,
    contiguous,
    copied,
    is_device_array,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.exchange import to_host
from opencl_lab.runtime.replay import replayed

Mode: TypeAlias = Literal["full", "same", "valid"]
MODES = get_args(Mode)


@replayed()
def convolve(
    call: Call,
    a: Any,
    b: Any,
    mode: Mode = "full",
    axes: int | Sequence[int] | None = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Convolve two arrays of the same number of dimensions by transforms.

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Both on the host or both on a device; shapes as in `scipy.signal.fftconvolve`.
        Integers are converted to float64; small sums are exact after rounding. Axes of
        length 1 broadcast: along them nothing is summed, in any mode.
    mode : {"full", "same", "valid"}
        The whole result; its centre, with the shape of `a`; or only what does not depend
        on padding, for which one array must not be shorter than the other along any
        axis with sums.
    axes : int or sequence of int, optional
        Axes to convolve along; default: all. Along the others, lengths must be equal or 1.
    out : array, optional
        Receives the result, with its shape and dtype; may be `a` or `b`.
    queue : pyopencl.CommandQueue, optional
        Where to work; default: a device array's own.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of floating-point type; complex if an input is complex.

    Raises
    ------
    InvalidProblem
        If the numbers of dimensions differ, an array is empty, lengths do not suit the mode or do
        not broadcast, or for an unknown mode or wrong `axes` or `out`.
    """
    if mode not in MODES:
        raise InvalidProblem(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    first = prepared(call, a, queue, device)
    second = prepared(call, b)
    check_sides(a=first, b=second)
    if first.ndim != second.ndim or not first.ndim:
        raise InvalidProblem(
            f"cannot convolve {counted(first.ndim, 'dimension')} with {second.ndim}"
        )
    if not (first.size and second.size):
        raise InvalidProblem("cannot convolve empty arrays")
    summed = _summed(first, second, axes)
    if mode == "valid":
        if not all(first.shape[d] >= second.shape[d] for d in summed):
            first, second = second, first
        if any(first.shape[d] < second.shape[d] for d in summed):
            raise InvalidProblem(
                f"for mode valid, one of {second.shape} and {first.shape} must not be longer than "
                "the other in any dimension"
            )
    full = [
        n + m - 1 if d in summed else max(n, m)
        for d, (n, m) in enumerate(zip(first.shape, second.shape, strict=True))
    ]
    part = _part(full, first.shape, second.shape, mode, summed)
    dtype = _common_type(first, second)
    first, second = converted(first, dtype, call), converted(second, dtype, call)
    lengths = {d: next_smooth(full[d]) for d in summed}
    if not summed:  # transforms need an axis; along one of length 1 there is one product
        lengths, part = {len(full): 1}, (*part, 0)
        longer = (*(slice(None) for _ in full), None)
        first, second = first[longer], second[longer]
    if dtype.kind == "c":
        first, second = (_complex_axes(x, lengths, False, call) for x in (first, second))
        result = _complex_axes(_product(first, second, call), lengths, True, call)
    else:
        last, length = lengths.popitem()
        first, second = (from_real(x, length, last, None, call) for x in (first, second))
        first, second = (_complex_axes(x, lengths, False, call) for x in (first, second))
        result = _complex_axes(_product(first, second, call), lengths, True, call)
        result = to_real(result, length, last, None, call)
    chosen = result[part]
    if out is not None:
        return finish(chosen, out, call)
    if is_device_array(chosen) and chosen.size < result.size:
        return copied(chosen, call)  # a view would hold the memory of the whole result
    return contiguous(chosen, call)


@checked
def power_spectrum(
    x: Any,
    fs: float = 1.0,
    *,
    window: Any = None,
    scaling: Literal["density", "spectrum"] = "density",
    axis: int = -1,
    out: np.ndarray[Any, Any] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the power of a real signal by frequency: its one-sided periodogram.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
        Real.
    fs : float
        Samples per second.
    window : array_like, optional
        Factors of the samples, as from `scipy.signal.get_window`; default: all 1.
    scaling : {"density", "spectrum"}
        Power per Hz, whose integral over frequencies is the power of the signal, or the
        power of a sine at each frequency.
    axis : int
        The time axis.
    out : numpy.ndarray, optional
        Receives the power, with its shape and dtype.
    queue : pyopencl.CommandQueue, optional
        Where to transform; default: a device array's own.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    frequencies, power : numpy.ndarray
        Always on the host; as from `scipy.signal.periodogram` without detrending.

    Raises
    ------
    InvalidProblem
        For complex signals, an empty axis, an `fs` that is not positive, a window of
        another length or whose factors sum to zero, an unknown scaling, or a wrong `out`.
    """
    if scaling not in ("density", "spectrum"):
        raise InvalidProblem(f"scaling must be density or spectrum, not {scaling!r}")
    if not 0 < fs < np.inf:
        raise InvalidProblem(f"fs must be a positive number of samples per second, not {fs!r}")
    call = Call()
    given = prepared(call, x, queue, device)
    axis = axis_of(axis, given.ndim)
    n = given.shape[axis]
    weights = np.ones(n) if window is None else to_host(as_array(window))
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise InvalidProblem(
            f"the window must have {n} real factors, not shape {weights.shape} of {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    weights /= np.max(np.abs(weights), initial=0) or 1  # the power does not depend on it
    total = fs * np.sum(weights**2) if scaling == "density" else np.sum(weights) ** 2
    if n and not total:
        raise InvalidProblem("the factors of the window add to nothing")
    if window is not None:
        host = given if isinstance(given, np.ndarray) else given.get()
        shape = [n if d == axis else 1 for d in range(host.ndim)]
        real_type(host)  # refuses complex numbers
        real = converted(host, real_dtype(complex_dtype(host.dtype)), call)
        with np.errstate(over="ignore", under="ignore"):
            given = (real * weights.reshape(shape)).astype(real.dtype)
    spectrum = rfft(given, axis=axis, queue=call.queue)
    if not isinstance(spectrum, np.ndarray):
        spectrum = spectrum.get()
    with np.errstate(over="ignore", invalid="ignore"):
        # In float64, and scaled first: squares may overflow or underflow where the power does not.
        parts = spectrum.view(spectrum.real.dtype).astype(np.float64) / np.sqrt(total)
        power = np.abs(parts.view(np.complex128)) ** 2  # infinite beside NaN, too
        bins = np.moveaxis(power, axis, -1)
        bins[..., 1 : (n + 1) // 2] *= 2  # these also represent their negative frequencies
        power = power.astype(spectrum.real.dtype)
    return rfftfreq(n, 1 / fs), finish(power, out, call)


def _summed(first: AnyArray, second: AnyArray, axes: int | Sequence[int] | None) -> list[int]:
    """Return the axes with sums: those of `axes` that are longer than 1 in both arrays."""
    shapes = first.shape, second.shape
    if axes is None:
        asked = list(range(first.ndim))
    else:
        given = axes if isinstance(axes, (Sequence, np.ndarray)) else (axes,)
        asked = sorted(axis_of(axis, first.ndim) for axis in given)
        if not asked or len(set(asked)) < len(asked):
            raise InvalidProblem(f"axes must be one or more, each once, not {axes!r}")
    for d, lengths in enumerate(zip(*shapes, strict=True)):
        if d not in asked and len({*lengths} - {1}) > 1:
            raise InvalidProblem(
                f"cannot convolve {shapes[0]} with {shapes[1]}: other axes than {axes} must have "
                "the same length, or 1"
            )
    return [d for d in asked if 1 not in (shapes[0][d], shapes[1][d])]


def _common_type(first: AnyArray, second: AnyArray) -> np.dtype[Any]:
    """Return the type in which two arrays are transformed."""
    dtype = np.result_type(first.dtype, second.dtype)
    if dtype.kind == "c":
        return complex_dtype(dtype)
    # Transforms read float16 directly, but nothing is converted to it.
    return dtype if first.dtype == second.dtype == np.float16 else real_dtype(complex_dtype(dtype))


def _product(first: AnyArray, second: AnyArray, call: Call) -> AnyArray:
    if not is_device_array(first):
        with np.errstate(all="ignore"):  # infinities of the input give NaN silently
            return first * second
    shape = np.broadcast_shapes(first.shape, second.shape)
    first, second = (broadcast(x, shape, call) for x in (first, second))
    executable = call.session.executable(
        ("product", first.size, first.dtype),
        lambda: pointwise_product(first.size, first.dtype, call.device),
    )
    inputs = {"first": first, "second": second}
    return call.execute(executable, inputs).outputs["product"].reshape(first.shape)


def _complex_axes(x: AnyArray, lengths: dict[int, int], inverse: bool, call: Call) -> AnyArray:
    for axis, length in lengths.items():
        x = complex_axis(x, length, axis, None, inverse, call)
    return x


def _part(
    full: list[int], first: tuple[int, ...], second: tuple[int, ...], mode: str, summed: list[int]
) -> tuple[slice | int, ...]:
    """Return the part of the periodic result that `mode` asks for."""
    starts, sizes = [0] * len(full), list(full)
    if mode == "same":
        starts, sizes = [(f - n) // 2 for f, n in zip(full, first, strict=True)], list(first)
    elif mode == "valid":
        for d in summed:
            starts[d], sizes[d] = second[d] - 1, first[d] - second[d] + 1
    return tuple(slice(start, start + n) for start, n in zip(starts, sizes, strict=True))
