"""Fourier transforms along several axes."""

from __future__ import annotations

from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.functions.one_axis import Shape, other_way
from opencl_lab.ops.fft.problem import Norm
from opencl_lab.ops.fft.transform import (
    axes_and_lengths,
    complex_axis,
    complex_type,
    finish,
    from_real,
    prepared,
    to_real,
)
from opencl_lab.runtime.arrays import AnyArray, copied
from opencl_lab.runtime.replay import replayed

__all__ = [
    "fft2",
    "fftn",
    "hfft2",
    "hfftn",
    "ifft2",
    "ifftn",
    "ihfft2",
    "ihfftn",
    "irfft2",
    "irfftn",
    "rfft2",
    "rfftn",
]


@replayed()
def fftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
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
    norm, out, queue, device
        As for `fft`.
    """
    return _every_axis(a, s, axes, norm, out, queue, device, False)


@replayed()
def ifftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform back along several axes; see `numpy.fft.ifftn`. Parameters are those of `fftn`."""
    return _every_axis(a, s, axes, norm, out, queue, device, True)


@replayed()
def rfftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform real numbers along several axes, the last one to half; see `numpy.fft.rfftn`.

    Parameters are those of `fftn`.
    """
    x, queue = prepared(a, queue, device)
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:
        raise InvalidProblem("a real transform needs at least one axis")
    outs = [None] * (len(order) - 1) + [out]  # for the last transform
    x = from_real(x, lengths[-1], order[-1], norm, queue, outs[0])
    rest = zip(reversed(order[:-1]), reversed(lengths[:-1]), outs[1:], strict=True)
    for axis, length, target in rest:
        x = complex_axis(x, length, axis, norm, False, queue, target)
    return x


@replayed()
def irfftn(
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform back to real numbers along several axes; see `numpy.fft.irfftn`.

    Parameters are those of `fftn`; ``s[-1]`` is the length of the result's last axis,
    by default ``2 * (m - 1)``. The last of `axes` comes last, after the others in their order.
    """
    return _back_to_real(a, s, axes, norm, out, queue, device)


@replayed()
def fft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform along two axes; see `numpy.fft.fft2`. Parameters are those of `fftn`."""
    return fftn(a, s, axes, norm, out, queue=queue, device=device)


@replayed()
def ifft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform back along two axes; see `numpy.fft.ifft2`. Parameters are those of `fftn`."""
    return ifftn(a, s, axes, norm, out, queue=queue, device=device)


@replayed()
def rfft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform real numbers along two axes; see `numpy.fft.rfft2`. As `rfftn`."""
    return rfftn(a, s, axes, norm, out, queue=queue, device=device)


@replayed()
def irfft2(
    a: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    out: AnyArray | None = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform back to real numbers along two axes; see `numpy.fft.irfft2`. As `irfftn`."""
    return irfftn(a, s, axes, norm, out, queue=queue, device=device)


@replayed()
def hfft2(
    x: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform a signal that mirrors itself along two axes; see `scipy.fft.hfft2`. As `hfftn`."""
    return hfftn(x, s, axes, norm, out=out, queue=queue, device=device)


@replayed()
def ihfft2(
    x: Any,
    s: Shape = None,
    axes: Shape = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Return half of the signal whose spectrum is real; see `scipy.fft.ihfft2`. As `ihfftn`."""
    return ihfftn(x, s, axes, norm, out=out, queue=queue, device=device)


@replayed()
def hfftn(
    x: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Transform a signal that mirrors itself along several axes; see `scipy.fft.hfftn`.

    `x` is half of it along the last of `axes`, and its spectrum is real.

    Parameters
    ----------
    x, s, axes, norm
        As `a` and the others of `irfftn`.
    overwrite_x, workers
        Permission to use the memory of `x`, and how many threads: no use to a device.
    out, queue, device
        As for `fft`.
    """
    return _back_to_real(x, s, axes, other_way(norm), out, queue, device, conjugate=True)


@replayed()
def ihfftn(
    x: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Return half of the signal whose spectrum is real; see `scipy.fft.ihfftn`.

    Parameters are those of `hfftn`, but `x` is real.
    """
    given, queue = prepared(x, queue, device)
    half = rfftn(given, s, axes, other_way(norm), queue=queue)
    return finish(half, out, queue, conjugate=True)


def _every_axis(
    a: Any,
    s: Shape,
    axes: Shape,
    norm: Norm,
    out: AnyArray | None,
    queue: Any,
    device: DeviceSpec,
    inverse: bool,
) -> AnyArray:
    x, queue = prepared(a, queue, device)
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:  # the result must not be the input
        return finish(copied(x, queue, dtype=complex_type(x)), out, queue)
    outs = [None] * (len(order) - 1) + [out]  # for the last transform
    for axis, length, target in zip(reversed(order), reversed(lengths), outs, strict=True):
        x = complex_axis(x, length, axis, norm, inverse, queue, target)
    return x


def _back_to_real(
    a: Any,
    s: Shape,
    axes: Shape,
    norm: Norm,
    out: AnyArray | None,
    queue: Any,
    device: DeviceSpec,
    *,
    conjugate: bool = False,
) -> AnyArray:
    """Transform frequencies, or their conjugates, along several axes to real numbers."""
    x, queue = prepared(a, queue, device)
    order, lengths = axes_and_lengths(x, s, axes)
    if not order:
        raise InvalidProblem("a real transform needs at least one axis")
    last = lengths[-1] if s is not None else 2 * (x.shape[order[-1]] - 1)
    for axis, length in zip(order[:-1], lengths[:-1], strict=True):
        x = complex_axis(x, length, axis, norm, True, queue, conjugate=conjugate)
        conjugate = False
    return to_real(x, last, order[-1], norm, queue, out, conjugate=conjugate)
