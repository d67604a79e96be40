"""Discrete cosine and sine transforms of types 1 to 4, with the signatures of `scipy.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.ops.fft.cosine import CosineKind, cosine_axis
from opencl_lab.ops.fft.functions.signatures import (
    Numbers,
    Options,
    Out,
    cosines_along_axes,
    cosines_along_axis,
    like,
)
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.transform import (
    axes_and_lengths,
    complex_type,
    converted,
    finish,
    last_first,
)
from opencl_lab.runtime.arrays import AnyArray, axis_of, contiguous, copied, empty
from opencl_lab.runtime.call import Call


@like(cosines_along_axis)
def dct(call: Call, x: AnyArray, how: Options, n: int | None, axis: int, out: Out) -> AnyArray:
    """Return the discrete cosine transform along one axis; see `scipy.fft.dct`.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
        Any shape, any strides. It is not changed. The real and imaginary components of complex
        numbers are transformed separately.
    type : {1, 2, 3, 4}
        Type 1 needs at least two samples.
    n : int, optional
        Length of the axis: longer ones are cut, shorter ones padded with zeros.
    axis : int
    norm : {"backward", "ortho", "forward"}, optional
    overwrite_x, workers
        Accepted for compatibility with `scipy.fft`, without effect.
    orthogonalize : bool, optional
        Whether to make the matrix of the transform orthogonal up to a factor; by default for
        ``norm="ortho"``. Applied to complex numbers, too.
    out : array, optional
        Receives the result, with its shape and dtype.
    queue : pyopencl.CommandQueue, optional
        Where to transform; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        float32 for float16 and float32, else float64; complex64 or complex128 for complex
        numbers. For device arrays the work is enqueued on `queue`, without waiting.

    Raises
    ------
    InvalidProblem
        For values that are not numbers, an unknown type or norm, too few samples, an axis out of
        bounds, or a wrong `out`.
    InvalidConfig
        For double precision on a device without it.

    Notes
    -----
    Computed by Fourier transforms. For n samples these have n real numbers for types 2 and 3
    (J. Makhoul, "A fast cosine transform in one and two dimensions", 1980), about 2 n real numbers
    for type 1, and for type 4 n / 2 complex numbers if n is even, else n.
    """
    return _one(x, CosineKind(*how, sine=False, inverse=False), n, axis, out, call)


@like(cosines_along_axis)
def idct(call: Call, x: AnyArray, how: Options, n: int | None, axis: int, out: Out) -> AnyArray:
    """Undo `dct` of the same type; see `scipy.fft.idct`. Parameters are those of `dct`."""
    return _one(x, CosineKind(*how, sine=False, inverse=True), n, axis, out, call)


@like(cosines_along_axis)
def dst(call: Call, x: AnyArray, how: Options, n: int | None, axis: int, out: Out) -> AnyArray:
    """Return the discrete sine transform along one axis; see `scipy.fft.dst`.

    Parameters are those of `dct`; type 1 takes a single sample, too.
    """
    return _one(x, CosineKind(*how, sine=True, inverse=False), n, axis, out, call)


@like(cosines_along_axis)
def idst(call: Call, x: AnyArray, how: Options, n: int | None, axis: int, out: Out) -> AnyArray:
    """Undo `dst` of the same type; see `scipy.fft.idst`. Parameters are those of `dst`."""
    return _one(x, CosineKind(*how, sine=True, inverse=True), n, axis, out, call)


@like(cosines_along_axes)
def dctn(call: Call, x: AnyArray, how: Options, s: Numbers, axes: Numbers, out: Out) -> AnyArray:
    """Return the discrete cosine transform along several axes; see `scipy.fft.dctn`.

    Parameters
    ----------
    x, type, norm, overwrite_x, workers, orthogonalize, out, queue, device
        As for `dct`.
    s : int or sequence of int, optional
        Length of each axis; -1 means its length in `x`, which is the default.
    axes : int or sequence of int, optional
        Default: the last ``len(s)``, or all.
    """
    return _several(x, CosineKind(*how, sine=False, inverse=False), s, axes, out, call)


@like(cosines_along_axes)
def idctn(call: Call, x: AnyArray, how: Options, s: Numbers, axes: Numbers, out: Out) -> AnyArray:
    """Undo `dctn` of the same type; see `scipy.fft.idctn`. Parameters are those of `dctn`."""
    return _several(x, CosineKind(*how, sine=False, inverse=True), s, axes, out, call)


@like(cosines_along_axes)
def dstn(call: Call, x: AnyArray, how: Options, s: Numbers, axes: Numbers, out: Out) -> AnyArray:
    """Return the discrete sine transform along several axes; see `scipy.fft.dstn`.

    Parameters are those of `dctn`.
    """
    return _several(x, CosineKind(*how, sine=True, inverse=False), s, axes, out, call)


@like(cosines_along_axes)
def idstn(call: Call, x: AnyArray, how: Options, s: Numbers, axes: Numbers, out: Out) -> AnyArray:
    """Undo `dstn` of the same type; see `scipy.fft.idstn`. Parameters are those of `dstn`."""
    return _several(x, CosineKind(*how, sine=True, inverse=True), s, axes, out, call)


def _one(x: AnyArray, kind: CosineKind, n: int | None, axis: int, out: Out, call: Call) -> AnyArray:
    return _along(x, [axis_of(axis, x.ndim)], [n], kind, out, call)


def _several(
    x: AnyArray, kind: CosineKind, s: Numbers, axes: Numbers, out: Out, call: Call
) -> AnyArray:
    s, axes = ((v,) if isinstance(v, (int, np.integer)) else v for v in (s, axes))
    return _along(x, *axes_and_lengths(x, s, axes), kind, out, call)


def _along(
    array: AnyArray,
    order: list[int],
    lengths: list[int | None],
    kind: CosineKind,
    out: Out,
    call: Call,
) -> AnyArray:
    """Transform along axes, counted from the front and each with its length, the last one first."""
    dtype = complex_type(array)
    real, wide = real_dtype(dtype), array.dtype.kind == "c"
    if not order:
        return finish(copied(array, call, dtype=dtype if wide else real), out, call)
    if wide:  # as pairs of real numbers, with one more axis
        array = contiguous(converted(array, dtype, call), call)
        array = _viewed(array, real, (*array.shape, 2), call)
    for axis, length, target in last_first(order, lengths, None if wide else out):
        array = cosine_axis(array, real, length, axis, kind, call, target)
    if not wide:
        return array
    return finish(_viewed(array, dtype, array.shape[:-1], call), out, call)


def _viewed(array: AnyArray, dtype: np.dtype[Any], shape: tuple[int, ...], call: Call) -> AnyArray:
    """Return the memory of a contiguous array as numbers of another type."""
    return array.view(dtype).reshape(shape) if array.size else empty(array, shape, dtype, call)
