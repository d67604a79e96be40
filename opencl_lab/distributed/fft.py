"""Fast Fourier transforms of arrays over many ranks, with names and norms of `numpy.fft`."""

from __future__ import annotations

from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.layout import Distribution
from opencl_lab.distributed.mpi import collective
from opencl_lab.distributed.transform_task import Axes
from opencl_lab.distributed.transforms import transform
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

LAST_TWO = (-2, -1)


@collective
def fft(
    a: DistArray,
    axis: int = -1,
    norm: Norm = None,
    *,
    natural: bool = True,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform along one axis; see `numpy.fft.fft`.

    Parameters
    ----------
    a : DistArray
        In any distribution, with parts on the host or on devices; it is not changed.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
    natural : bool
        False, for arrays of one dimension: do not bring the frequencies into their order, which
        saves an exchange. The result is a matrix (n1, n2) in ``slab(0)``, whose element
        ``[k1, k2]`` is frequency ``k1 + n1 * k2``; ``ifft(..., natural=False)`` takes it.
    distribution : Slab, Blocks or int, optional
        Of the result; an integer stands for ``slab(axis)``. By default that of `a`, with even
        parts where a length changes. Another one can save an exchange: ``fft2`` takes one from
        ``slab(0)`` to ``slab(1)``, and two from ``slab(0)`` to ``slab(0)``.
    device : str, int or Device, optional
        Where to transform parts on the host, as `device_of` takes it.

    Returns
    -------
    DistArray
        complex64 for float16, float32 and complex64, else complex128; on devices if `a` is.

    Raises
    ------
    InvalidProblem
        On all ranks, for what `opencl_lab.fft.fft` refuses.
    InvalidConfig
        On all ranks, if arguments differ between them or a device lacks double precision.

    Notes
    -----
    A row of n numbers that is cut needs factors n1·n2 = n, of which those nearest to the square
    root are taken, both divisible by the number of ranks if there are such. If n is prime, one rank
    transforms it. In an array of few rows, each row is transformed by one rank.
    """
    return transform("fft", a, (axis,), norm, distribution, device, natural)


@collective
def ifft(
    a: DistArray,
    axis: int = -1,
    norm: Norm = None,
    *,
    natural: bool = True,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Inverse transform along one axis; see `numpy.fft.ifft`.

    Parameters are those of `fft`, but with ``natural=False``, `a` is the matrix that `fft` returns
    then, and the result has one dimension.
    """
    return transform("ifft", a, (axis,), norm, distribution, device, natural)


@collective
def rfft(
    a: DistArray,
    axis: int = -1,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform real numbers to their first n // 2 + 1 frequencies; see `numpy.fft.rfft`.

    Parameters are those of `fft`. A row that is cut takes as long as a complex one.
    """
    return transform("rfft", a, (axis,), norm, distribution, device)


@collective
def irfft(
    a: DistArray,
    axis: int = -1,
    norm: Norm = None,
    *,
    n: int | None = None,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform n // 2 + 1 frequencies to n real numbers; see `numpy.fft.irfft`.

    Parameters are those of `fft`, and `n`, by default ``2 * (m - 1)`` for an axis of length m. A
    row that is cut takes as long as a complex one.
    """
    return transform("irfft", a, (axis,), norm, distribution, device, n=n)


@collective
def fftn(
    a: DistArray,
    axes: Axes | None = None,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform along several axes, by default all; see `numpy.fft.fftn`. Else as `fft`."""
    return transform("fft", a, axes, norm, distribution, device)


@collective
def ifftn(
    a: DistArray,
    axes: Axes | None = None,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Inverse transform along several axes; see `numpy.fft.ifftn`. Parameters as for `fftn`."""
    return transform("ifft", a, axes, norm, distribution, device)


@collective
def rfftn(
    a: DistArray,
    axes: Axes | None = None,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform real numbers, along the last of `axes` first; see `numpy.fft.rfftn`.

    Parameters are those of `fftn`. That axis has n // 2 + 1 frequencies.
    """
    return transform("rfft", a, axes, norm, distribution, device)


@collective
def irfftn(
    a: DistArray,
    axes: Axes | None = None,
    norm: Norm = None,
    *,
    n: int | None = None,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Inverse transform to real numbers, along the last of `axes` last; see `numpy.fft.irfftn`.

    Parameters are those of `fftn`, and `n`, the length of the result along that axis: by default
    ``2 * (m - 1)`` for one of length m.
    """
    return transform("irfft", a, axes, norm, distribution, device, n=n)


@collective
def fft2(
    a: DistArray,
    axes: Axes = LAST_TWO,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform along two axes; see `numpy.fft.fft2`. Parameters are those of `fftn`."""
    return transform("fft", a, axes, norm, distribution, device)


@collective
def ifft2(
    a: DistArray,
    axes: Axes = LAST_TWO,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Inverse transform along two axes; see `numpy.fft.ifft2`. Parameters as for `fftn`."""
    return transform("ifft", a, axes, norm, distribution, device)


@collective
def rfft2(
    a: DistArray,
    axes: Axes = LAST_TWO,
    norm: Norm = None,
    *,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Transform real numbers along two axes; see `numpy.fft.rfft2`. As `rfftn`."""
    return transform("rfft", a, axes, norm, distribution, device)


@collective
def irfft2(
    a: DistArray,
    axes: Axes = LAST_TWO,
    norm: Norm = None,
    *,
    n: int | None = None,
    distribution: Distribution | int | None = None,
    device: DeviceSpec = None,
) -> DistArray:
    """Inverse transform to real numbers along two axes; see `numpy.fft.irfft2`. As `irfftn`."""
    return transform("irfft", a, axes, norm, distribution, device, n=n)
