"""Fourier transforms along one axis, of mirrored signals too, and shifts of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm
from opencl_lab.ops.fft.transform import (
    complex_axis,
    finish,
    from_real,
    prepared,
    rolled,
    to_real,
)
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.replay import replayed

__all__ = [
    "fft",
    "fftshift",
    "hfft",
    "ifft",
    "ifftshift",
    "ihfft",
    "irfft",
    "rfft",
]

Shape: TypeAlias = Sequence[int] | None


@replayed()
def fft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
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
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        complex64 or complex128.
    """
    x, queue = prepared(a, queue, device)
    return complex_axis(x, n, axis, norm, False, queue, out)


@replayed()
def ifft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform back along one axis; see `numpy.fft.ifft`. Parameters are those of `fft`."""
    x, queue = prepared(a, queue, device)
    return complex_axis(x, n, axis, norm, True, queue, out)


@replayed()
def rfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform real numbers to their first n // 2 + 1 frequencies; see `numpy.fft.rfft`.

    Parameters are those of `fft`; complex input is an `InvalidProblem`.
    """
    x, queue = prepared(a, queue, device)
    return from_real(x, n, axis, norm, queue, out)


@replayed()
def irfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform n // 2 + 1 frequencies to n real numbers; see `numpy.fft.irfft`.

    Parameters are those of `fft`, but `n` is the length of the result: by default
    ``2 * (m - 1)`` for an axis of length m.
    """
    x, queue = prepared(a, queue, device)
    return to_real(x, n, axis, norm, queue, out)


@replayed()
def hfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform a signal that mirrors itself, of which `a` is half; see `numpy.fft.hfft`.

    Its spectrum is real. Parameters are those of `irfft`.
    """
    x, queue = prepared(a, queue, device)
    return to_real(x, n, axis, other_way(norm), queue, out, conjugate=True)


@replayed()
def ihfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Return half of the signal whose spectrum is real; see `numpy.fft.ihfft`.

    Parameters are those of `rfft`.
    """
    x, queue = prepared(a, queue, device)
    half = from_real(x, n, axis, other_way(norm), queue)
    return finish(half, out, queue, conjugate=True)


def other_way(norm: Norm) -> Norm:
    """Return the norm of a transform in terms of the opposite direction."""
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


@replayed()
def fftshift(
    x: Any,
    axes: int | Shape = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Move the frequency 0 to the centre; see `numpy.fft.fftshift`.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
    axes : int or sequence of int, optional
        Default: all.
    out : array, optional
        Receives the result; may be `x`. Shape and dtype of `x`.
    queue : pyopencl.CommandQueue, optional
        For a device array that has none.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    """
    return rolled(x, axes, lambda n: n // 2, out, queue, device)


@replayed()
def ifftshift(
    x: Any,
    axes: int | Shape = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Undo `fftshift`; see `numpy.fft.ifftshift`. Parameters are those of `fftshift`."""
    return rolled(x, axes, lambda n: -(n // 2), out, queue, device)
