"""Fourier transforms along one or several axes, also of Hermitian signals, and shifts."""

from __future__ import annotations

from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.alike import like
from opencl_lab.ops.fft.axes import at_once
from opencl_lab.ops.fft.functions.signatures import (
    Numbers,
    Out,
    Shape,
    along_axes,
    along_axis,
    mirrored_along_axes,
)
from opencl_lab.ops.fft.problem import Norm
from opencl_lab.ops.fft.transform import (
    axes_and_lengths,
    complex_axis,
    complex_type,
    finish,
    from_real,
    last_first,
    rolled,
    to_real,
)
from opencl_lab.runtime.arrays import AnyArray, copied
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.waiting import WaitFor

LAST_TWO = (-2, -1)


@like(along_axis)
def fft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Transform along one axis; see `numpy.fft.fft`.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Any shape, any strides.
    n : int, optional
        Length of the axis: longer ones are cut, shorter ones padded with zeros.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
    out : array, optional
        Receives the result, with its shape and dtype.
    queue : pyopencl.CommandQueue, optional
        Where to transform; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        complex64 or complex128.
    """
    return complex_axis(x, n, axis, norm, False, call, out)


@like(along_axis)
def ifft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Inverse transform along one axis; see `numpy.fft.ifft`. Parameters are those of `fft`."""
    return complex_axis(x, n, axis, norm, True, call, out)


@like(along_axis)
def rfft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Transform real numbers to their first n // 2 + 1 frequencies; see `numpy.fft.rfft`.

    Parameters are those of `fft`; complex input is an `InvalidProblem`.
    """
    return from_real(x, n, axis, norm, call, out)


@like(along_axis)
def irfft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Transform n // 2 + 1 frequencies to n real numbers; see `numpy.fft.irfft`.

    Parameters are those of `fft`, but `n` is the length of the result: by default
    ``2 * (m - 1)`` for an axis of length m.
    """
    return to_real(x, n, axis, norm, call, out)


@like(along_axis)
def hfft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Transform a Hermitian signal, of which `a` is half; see `numpy.fft.hfft`.

    The spectrum is real. Parameters are those of `irfft`.
    """
    return to_real(x, n, axis, _other_way(norm), call, out, conjugate=True)


@like(along_axis)
def ihfft(call: Call, x: AnyArray, n: int | None, axis: int, norm: Norm, out: Out) -> AnyArray:
    """Return half of the Hermitian signal of a real spectrum; see `numpy.fft.ihfft`.

    Parameters are those of `rfft`.
    """
    half = from_real(x, n, axis, _other_way(norm), call)
    return finish(half, out, call, conjugate=True)


@like(along_axes)
def fftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform along several axes; see `numpy.fft.fftn`.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
    s : sequence of int, optional
        Length of each axis; -1 means its length in `a`, which is the default.
    axes : sequence of int, optional
        Default: the last ``len(s)``, or all. They are transformed from the last to the first; a
        repeated axis is transformed repeatedly.
    norm, out, queue, device, wait_for
        As for `fft`.
    """
    return complex_axes(x, s, axes, norm, out, call, inverse=False)


@like(along_axes)
def ifftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Inverse transform along several axes; see `numpy.fft.ifftn`. As `fftn`."""
    return complex_axes(x, s, axes, norm, out, call, inverse=True)


@like(along_axes)
def rfftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform real numbers along several axes, the last one by `rfft`; see `numpy.fft.rfftn`.

    Parameters are those of `fftn`.
    """
    return from_real_axes(x, s, axes, norm, out, call)


@like(along_axes)
def irfftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Inverse transform to real numbers along several axes; see `numpy.fft.irfftn`.

    Parameters are those of `fftn`; ``s[-1]`` is the length of the result along the last of `axes`,
    by default ``2 * (m - 1)``. The other axes are transformed first, in their order.
    """
    return to_real_axes(x, s, axes, norm, out, call)


@like(along_axes, axes=LAST_TWO)
def fft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform along two axes; see `numpy.fft.fft2`. Parameters are those of `fftn`."""
    return complex_axes(x, s, axes, norm, out, call, inverse=False)


@like(along_axes, axes=LAST_TWO)
def ifft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Inverse transform along two axes; see `numpy.fft.ifft2`. Parameters are those of `fftn`."""
    return complex_axes(x, s, axes, norm, out, call, inverse=True)


@like(along_axes, axes=LAST_TWO)
def rfft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform real numbers along two axes; see `numpy.fft.rfft2`. As `rfftn`."""
    return from_real_axes(x, s, axes, norm, out, call)


@like(along_axes, axes=LAST_TWO)
def irfft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Inverse transform to real numbers along two axes; see `numpy.fft.irfft2`. As `irfftn`."""
    return to_real_axes(x, s, axes, norm, out, call)


@like(mirrored_along_axes)
def hfftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform a Hermitian signal along several axes; see `scipy.fft.hfftn`.

    `x` is half of it along the last of `axes`. The spectrum is real.

    Parameters
    ----------
    x, s, axes, norm
        As `a` and the others of `irfftn`.
    overwrite_x, workers
        Accepted for compatibility with `scipy.fft`, without effect.
    out, queue, device, wait_for
        As for `fft`.
    """
    return to_real_axes(x, s, axes, _other_way(norm), out, call, conjugate=True)


@like(mirrored_along_axes)
def ihfftn(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Return half of the Hermitian signal of a real spectrum; see `scipy.fft.ihfftn`.

    Parameters are those of `hfftn`, but `x` is real.
    """
    half = from_real_axes(x, s, axes, _other_way(norm), None, call)
    return finish(half, out, call, conjugate=True)


@like(mirrored_along_axes, axes=LAST_TWO)
def hfft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Transform a Hermitian signal along two axes; see `scipy.fft.hfft2`. As `hfftn`."""
    return to_real_axes(x, s, axes, _other_way(norm), out, call, conjugate=True)


@like(mirrored_along_axes, axes=LAST_TWO)
def ihfft2(call: Call, x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out) -> AnyArray:
    """Return half of a Hermitian signal from its spectrum; see `scipy.fft.ihfft2`. As `ihfftn`."""
    half = from_real_axes(x, s, axes, _other_way(norm), None, call)
    return finish(half, out, call, conjugate=True)


@replayed()
def fftshift(
    call: Call,
    x: Any,
    axes: Numbers = None,
    *,
    out: Out = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Move the zero frequency to the centre; see `numpy.fft.fftshift`.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
    axes : int or sequence of int, optional
        Default: all.
    out : array, optional
        Receives the result, with the shape and dtype of `x`; may be `x`.
    queue : pyopencl.CommandQueue, optional
        In place of a device array's own.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.
    """
    return rolled(call, x, axes, lambda n: n // 2, out, queue, device)


@replayed()
def ifftshift(
    call: Call,
    x: Any,
    axes: Numbers = None,
    *,
    out: Out = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Undo `fftshift`; see `numpy.fft.ifftshift`. Parameters are those of `fftshift`."""
    return rolled(call, x, axes, lambda n: -(n // 2), out, queue, device)


def _other_way(norm: Norm) -> Norm:
    """Return the norm with which the opposite direction scales alike."""
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


def complex_axes(
    x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out, call: Call, *, inverse: bool
) -> AnyArray:
    """Transform numbers along several axes, the last one first."""
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:  # the result must not be the input
        return finish(copied(x, call, dtype=complex_type(x)), out, call)
    done = at_once(call, x, "c2c", order[::-1], lengths[::-1], norm, out, inverse=inverse)
    if done is not None:
        return done
    for axis, length, target in last_first(order, lengths, out):
        x = complex_axis(x, length, axis, norm, inverse, call, target)
    return x


def _real_axes(x: AnyArray, s: Shape, axes: Shape) -> tuple[list[int], list[int | None]]:
    """Return axes and lengths of a real transform, which needs at least one axis."""
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:
        raise InvalidProblem("a real transform needs at least one axis")
    return order, lengths


def from_real_axes(
    x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out, call: Call
) -> AnyArray:
    """Transform real numbers along several axes, the last one first, to half of its frequencies."""
    order, lengths = _real_axes(x, s, axes)
    done = at_once(call, x, "r2c", order[::-1], lengths[::-1], norm, out)
    if done is not None:
        return done
    (*turns,) = last_first(order, lengths, out)
    axis, length, target = turns[0]
    x = from_real(x, length, axis, norm, call, target)
    for axis, length, target in turns[1:]:
        x = complex_axis(x, length, axis, norm, False, call, target)
    return x


def to_real_axes(
    x: AnyArray, s: Shape, axes: Shape, norm: Norm, out: Out, call: Call, *, conjugate: bool = False
) -> AnyArray:
    """Transform frequencies, or their conjugates, along several axes to real numbers."""
    order, lengths = _real_axes(x, s, axes)
    if s is None:
        lengths[-1] = 2 * (x.shape[order[-1]] - 1)
    done = at_once(call, x, "c2r", order, lengths, norm, out, inverse=True, conjugate=conjugate)
    if done is not None:
        return done
    for axis, length in zip(order[:-1], lengths[:-1], strict=True):
        x = complex_axis(x, length, axis, norm, True, call, conjugate=conjugate)
        conjugate = False
    return to_real(x, lengths[-1], order[-1], norm, call, out, conjugate=conjugate)
