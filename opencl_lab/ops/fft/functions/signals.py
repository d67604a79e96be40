"""What transforms are good for: convolution and spectra of power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.fft import rfftfreq

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.convolution import Mode
from opencl_lab.ops.fft.convolution import convolve as by_transforms
from opencl_lab.ops.fft.functions.one_axis import rfft
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.problem import complex_dtype
from opencl_lab.ops.fft.transform import axis_of, converted, finish, prepared, real_type
from opencl_lab.ops.solver import real_number
from opencl_lab.runtime.arrays import AnyArray, as_array
from opencl_lab.runtime.replay import replayed

__all__ = ["convolve", "power_spectrum"]


@replayed()
def convolve(
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
        Both on the host or both on a device. A product of sizes is summed in all
        positions, as in `scipy.signal.fftconvolve`. Integers become float64,
        whose sums are right after rounding while they are small. Axes of length 1 broadcast:
        along them nothing is summed, in any mode.
    mode : {"full", "same", "valid"}
        All of the result; its centre, of the shape of `a`; or only what does not
        depend on what lies outside, where one must not be longer than the other along
        any axis with sums.
    axes : int or sequence of int, optional
        Axes to convolve along; default: all. Along others lengths must be equal or 1.
    out : array, optional
        Receives the result; of its shape and dtype. It may be `a` or `b`.
    queue : pyopencl.CommandQueue, optional
        Where to work on host arrays.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of floating-point type, complex if an input is.

    Raises
    ------
    InvalidProblem
        If the dimensions differ, an array is empty, or longer than its mode allows, if lengths
        do not broadcast, or for wrong `axes` or `out`.
    """
    return by_transforms(a, b, mode, axes, out, queue, device)


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
        Samples in a second.
    window : array_like, optional
        Factors of the samples, such as `scipy.signal.get_window` gives; default: all 1.
    scaling : {"density", "spectrum"}
        Power in 1 / fs, whose sum over frequencies is that of the signal, or power
        of the sine at each frequency.
    axis : int
        Axis of time.
    out : numpy.ndarray, optional
        Receives the power; of its shape and dtype.
    queue : pyopencl.CommandQueue, optional
        Where to transform a host array.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    frequencies, power : numpy.ndarray
        On the host in any case, as `scipy.signal.periodogram` without detrending.

    Raises
    ------
    InvalidProblem
        For complex signals, an empty axis, a rate that is not positive, a window of
        another length or whose factors add to nothing, an unknown scaling, or a wrong `out`.
    """
    if scaling not in ("density", "spectrum"):
        raise InvalidProblem(f"scaling must be density or spectrum, not {scaling!r}")
    rate = real_number(fs, "fs")
    if not 0 < rate < np.inf:
        raise InvalidProblem(f"fs must be a positive number of samples per second, not {fs!r}")
    given, queue = prepared(x, queue, device)
    axis = axis_of(given, axis)
    n = given.shape[axis]
    weights = np.ones(n) if window is None else as_array(window)
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise InvalidProblem(
            f"the window must have {n} real factors, not shape {weights.shape} of {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    total = rate * np.sum(weights**2) if scaling == "density" else np.sum(weights) ** 2
    if n and not total:
        raise InvalidProblem("the factors of the window add to nothing")
    if window is not None:
        host = given if isinstance(given, np.ndarray) else given.get()
        shape = [n if d == axis else 1 for d in range(host.ndim)]
        real_type(host)  # refuses complex numbers
        real = converted(host, real_dtype(complex_dtype(host.dtype)))
        given = real * weights.astype(real.dtype).reshape(shape)
    spectrum = rfft(given, axis=axis, queue=queue)
    if not isinstance(spectrum, np.ndarray):
        spectrum = spectrum.get()
    power = spectrum.real**2 + spectrum.imag**2
    with np.errstate(over="ignore"):  # 1 / total alone may be too large for float32
        np.multiply(power, 1 / total, out=power, dtype=np.float64, casting="same_kind")
    bins = np.moveaxis(power, axis, -1)
    bins[..., 1 : (n + 1) // 2] *= 2  # these stand for their negative frequencies too
    return rfftfreq(n, 1 / rate), finish(power, out, queue)
