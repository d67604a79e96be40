"""Fast Fourier transforms with the signatures, shapes and norms of `numpy.fft`.

NumPy arrays give NumPy arrays; a `pyopencl.array.Array` gives one on the same queue,
enqueued without waiting. float16, float32 and complex64 are transformed in single
precision, with results in it, all other numbers in double precision. `rfft` and its kin
read float16 as it is stored, which halves what goes to the device. Inputs are never
changed. Errors are those of `opencl_lab.dft`. The algorithm is the `fft` of the operation
``dft``: Stockham passes, four steps for long transforms, Bluestein's convolution for
lengths with large prime factors, half-length transforms for real signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.fft import fftfreq, rfftfreq

from opencl_lab.errors import InvalidProblem
from opencl_lab.operations.dft.operation import complex_dtype
from opencl_lab.operations.dft.problem import real_dtype
from opencl_lab.operations.dft.transform import (
    as_complex,
    as_real,
    axes_and_lengths,
    axis_of,
    complex_axis,
    converted,
    finish,
    from_real,
    prepared,
    rolled,
    to_real,
    without_warnings,
)
from opencl_lab.runtime.arrays import AnyArray, contiguous

__all__ = [
    "convolve",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "power_spectrum",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Shape = Sequence[int] | None
Norm = str | None


def fft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform along one axis; see `numpy.fft.fft`.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Any shape, any strides.
    n : int, optional
        Length of the axis: longer ones are cut, shorter ones get zeros.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
    out : array, optional
        Receives the result; of its shape and dtype.
    queue : pyopencl.CommandQueue, optional
        Where to transform a host array; default: the library's queue on `select_device()`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        complex64 or complex128.
    """
    x, queue = prepared(a, queue)
    x = complex_axis(as_complex(x), n, axis, norm, False, queue)
    return finish(x, out, queue)


def ifft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform back along one axis; see `numpy.fft.ifft`. Parameters are those of `fft`."""
    x, queue = prepared(a, queue)
    x = complex_axis(as_complex(x), n, axis, norm, True, queue)
    return finish(x, out, queue)


def rfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform real numbers to their first n // 2 + 1 frequencies; see `numpy.fft.rfft`.

    Parameters are those of `fft`; complex input is an `InvalidProblem`.
    """
    x, queue = prepared(a, queue)
    return finish(from_real(as_real(x), n, axis, norm, queue), out, queue)


def irfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform n // 2 + 1 frequencies to n real numbers; see `numpy.fft.irfft`.

    Parameters are those of `fft`, but `n` is the length of the result: by default
    ``2 * (m - 1)`` for an axis of length m.
    """
    x, queue = prepared(a, queue)
    return finish(to_real(as_complex(x), n, axis, norm, queue), out, queue)


def hfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform a signal that mirrors itself, of which `a` is half; see `numpy.fft.hfft`.

    Its spectrum is real. Parameters are those of `irfft`.
    """
    x, queue = prepared(a, queue)
    x = _conjugate(contiguous(as_complex(x), queue))  # pyopencl conjugates no other
    return finish(to_real(x, n, axis, _other_way(norm), queue), out, queue)


def ihfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Return half of the signal whose spectrum is real; see `numpy.fft.ihfft`.

    Parameters are those of `rfft`.
    """
    x, queue = prepared(a, queue)
    half = from_real(as_real(x), n, axis, _other_way(norm), queue)
    return finish(_conjugate(half), out, queue)


def _other_way(norm: Norm) -> Norm:
    """Return the norm of a transform in terms of the opposite direction."""
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


def _conjugate(x: AnyArray) -> AnyArray:
    return without_warnings(x.conj) if x.size else x


def fftshift(x: Any, axes: int | Shape = None, *, queue: Any = None) -> AnyArray:
    """Move the frequency 0 to the centre; see `numpy.fft.fftshift`.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
    axes : int or sequence of int, optional
        Default: all.
    queue : pyopencl.CommandQueue, optional
        For a device array that has none.
    """
    return rolled(x, axes, lambda n: n // 2, queue)


def ifftshift(x: Any, axes: int | Shape = None, *, queue: Any = None) -> AnyArray:
    """Undo `fftshift`; see `numpy.fft.ifftshift`. Parameters are those of `fftshift`."""
    return rolled(x, axes, lambda n: -(n // 2), queue)


def fftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform along several axes; see `numpy.fft.fftn`.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
    s : sequence of int, optional
        Length of each axis, -1 for its own; the default is that of all.
    axes : sequence of int, optional
        Default: the last ``len(s)``, or all. They are transformed from the last to the first,
        and one that comes twice is transformed twice.
    norm, out, queue
        As for `fft`.
    """
    return _every_axis(a, s, axes, norm, out, queue, False)


def ifftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform back along several axes; see `numpy.fft.ifftn`. Parameters are those of `fftn`."""
    return _every_axis(a, s, axes, norm, out, queue, True)


def rfftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform real numbers along several axes, the last one to half; see `numpy.fft.rfftn`.

    Parameters are those of `fftn`.
    """
    x, queue = prepared(a, queue)
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:
        raise InvalidProblem("a real transform needs at least one axis")
    x = from_real(as_real(x), lengths[-1], order[-1], norm, queue)
    for axis, length in zip(reversed(order[:-1]), reversed(lengths[:-1]), strict=True):
        x = complex_axis(x, length, axis, norm, False, queue)
    return finish(x, out, queue)


def irfftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform back to real numbers along several axes; see `numpy.fft.irfftn`.

    Parameters are those of `fftn`; ``s[-1]`` is the length of the result's last axis,
    by default ``2 * (m - 1)``. The last of `axes` comes last, after the others in their order.
    """
    x, queue = prepared(a, queue)
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:
        raise InvalidProblem("a real transform needs at least one axis")
    last = lengths[-1] if s is not None else 2 * (x.shape[order[-1]] - 1)
    x = as_complex(x)
    for axis, length in zip(order[:-1], lengths[:-1], strict=True):
        x = complex_axis(x, length, axis, norm, True, queue)
    return finish(to_real(x, last, order[-1], norm, queue), out, queue)


def fft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform along two axes; see `numpy.fft.fft2`. Parameters are those of `fftn`."""
    return fftn(a, s, axes, norm, out, queue=queue)


def ifft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform back along two axes; see `numpy.fft.ifft2`. Parameters are those of `fftn`."""
    return ifftn(a, s, axes, norm, out, queue=queue)


def rfft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform real numbers along two axes; see `numpy.fft.rfft2`. As `rfftn`."""
    return rfftn(a, s, axes, norm, out, queue=queue)


def irfft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
) -> AnyArray:
    """Transform back to real numbers along two axes; see `numpy.fft.irfft2`. As `irfftn`."""
    return irfftn(a, s, axes, norm, out, queue=queue)


def _every_axis(
    a: Any, s: Shape, axes: Shape, norm: Norm, out: AnyArray | None, queue: Any, inverse: bool
) -> AnyArray:
    x, queue = prepared(a, queue)
    order, lengths = axes_and_lengths(x, s, axes)
    given = x
    x = as_complex(x)
    for axis, length in zip(reversed(order), reversed(lengths), strict=True):
        x = complex_axis(x, length, axis, norm, inverse, queue)
    if x is given:  # no axes at all, and the result must not be the input
        x = x.copy()
    return finish(x, out, queue)


def convolve(a: Any, b: Any, mode: str = "full", *, queue: Any = None) -> AnyArray:
    """Convolve two arrays of the same number of dimensions by transforms.

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Both on the host or both on a device. A product of sizes is summed in all
        positions, as in `scipy.signal.fftconvolve`. Integers become float64,
        whose sums are right after rounding while they are small.
    mode : {"full", "same", "valid"}
        All of the result; its centre, of the shape of `a`; or only what does not
        depend on what lies outside, where one must not be longer than the other in
        any dimension.
    queue : pyopencl.CommandQueue, optional
        Where to work on host arrays.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of floating-point type, complex if an input is.

    Raises
    ------
    InvalidProblem
        If the dimensions differ, or an array is empty, or longer than its mode allows.
    """
    from opencl_lab.operations.dft.convolution import convolve as by_transforms

    return by_transforms(a, b, mode, queue)


def power_spectrum(
    x: Any,
    fs: float = 1.0,
    *,
    window: Any = None,
    scaling: str = "density",
    axis: int = -1,
    queue: Any = None,
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
    queue : pyopencl.CommandQueue, optional
        Where to transform a host array.

    Returns
    -------
    frequencies, power : numpy.ndarray
        On the host in any case, as `scipy.signal.periodogram` without detrending.

    Raises
    ------
    InvalidProblem
        For complex signals, an empty axis, a rate that is not positive, a window of
        another length or whose factors add to nothing, or an unknown scaling.
    """
    if scaling not in ("density", "spectrum"):
        raise InvalidProblem(f"scaling must be density or spectrum, not {scaling!r}")
    if not (isinstance(fs, (int, float, np.number)) and 0 < fs < np.inf):
        raise InvalidProblem(f"fs must be a positive number of samples a second, not {fs!r}")
    given, queue = prepared(x, queue)
    axis = axis_of(given, axis)
    n = given.shape[axis]
    weights = np.ones(n) if window is None else np.asarray(window)
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise InvalidProblem(
            f"the window must have {n} real factors, not shape {weights.shape} of {weights.dtype}"
        )
    weights = weights.astype(np.float64)
    total = fs * np.sum(weights**2) if scaling == "density" else np.sum(weights) ** 2
    if n and not total:
        raise InvalidProblem("the factors of the window add to nothing")
    if window is not None:
        host = given if isinstance(given, np.ndarray) else given.get()
        shape = [n if d == axis else 1 for d in range(host.ndim)]
        real = converted(as_real(host), real_dtype(complex_dtype(host.dtype)))
        given = real * weights.astype(real.dtype).reshape(shape)
    spectrum = rfft(given, axis=axis, queue=queue)
    if not isinstance(spectrum, np.ndarray):
        spectrum = spectrum.get()
    power = spectrum.real**2 + spectrum.imag**2
    power *= power.dtype.type(1 / total)
    bins = np.moveaxis(power, axis, -1)
    bins[..., 1 : (n + 1) // 2] *= 2  # these stand for their negative frequencies too
    return rfftfreq(n, 1 / fs), power
