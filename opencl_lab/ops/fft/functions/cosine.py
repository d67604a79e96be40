"""Discrete cosine and sine transforms of types 1 to 4, with the signatures of `scipy.fft`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config
from opencl_lab.core.wording import counted
from opencl_lab.ops.alike import like
from opencl_lab.ops.fft.fast import FFT
from opencl_lab.ops.fft.functions.signatures import (
    Numbers,
    Options,
    Out,
    cosines_along_axes,
    cosines_along_axis,
)
from opencl_lab.ops.fft.passes.builder import PlanBuilder, real_dtype
from opencl_lab.ops.fft.passes.rows import Arguments, over_rows
from opencl_lab.ops.fft.passes.twiddles import strided_twiddles
from opencl_lab.ops.fft.problem import DftProblem, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.ops.fft.transform import (
    axes_and_lengths,
    complex_type,
    converted,
    finish,
    last_first,
    whole,
)
from opencl_lab.runtime.arrays import AnyArray, axis_of, contiguous, copied, empty
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.rows import Rows

TEMPLATE = "dft/cosine.cl.mako"
INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type that inverts each type, up to a factor."""


@dataclass(frozen=True)
class CosineKind:
    """Which cosine or sine transform to do, with the parameters of `scipy.fft`."""

    type: int  # 1, 2, 3 or 4
    norm: str | None  # ``backward``, ``ortho`` or ``forward``
    orthogonalize: bool | None  # default: whether the norm is ``ortho``
    sine: bool
    inverse: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", whole(self.type, "type"))
        if self.type not in INVERSES:
            raise InvalidProblem(f"type must be 1, 2, 3 or 4, not {self.type}")

    @property
    def ortho(self) -> bool:
        """Whether the matrix is made orthogonal, up to a factor."""
        chosen = self.orthogonalize
        return self.norm == "ortho" if chosen is None else bool(chosen)

    def factor(self, n: int) -> float:
        """Return the factor of transforms of `n` samples.

        Raise `InvalidProblem` if there are too few samples or the norm is unknown.
        """
        least = 2 if self.type == 1 and not self.sine else 1
        if n < least:
            raise InvalidProblem(
                f"a {'sine' if self.sine else 'cosine'} transform of type {self.type} needs at "
                f"least {counted(least, 'sample')}, not {n}"
            )
        more = 0 if self.type > 1 else 1 if self.sine else -1
        return scale_of(2 * (n + more), self.norm, self.inverse)


@dataclass(frozen=True)
class _Cosine:
    """Cosine or sine transforms of rows."""

    type: int  # 1, 2, 3 or 4
    sine: bool
    # Numbers of a row, and number of rows; not 0.
    n: int
    rows: int
    dtype: np.dtype[Any]  # complex type whose components have the type of the numbers
    factor: float  # of the results
    ortho: bool  # whether the ends are weighted so that the matrix is orthogonal up to a factor

    @property
    def padded(self) -> bool:
        """Whether the transform is made of the odd frequencies of a row of twice the length."""
        return self.type == 4 and self.n % 2 == 1

    @property
    def fourier(self) -> DftProblem:
        """The Fourier transforms to do."""
        n, dtype, rows, factor = self.n, self.dtype, self.rows, self.factor
        if self.type == 1:
            n = 2 * (n + 1 if self.sine else n - 1)
        elif self.type == 2 or self.padded:
            n, factor = n * (2 if self.padded else 1), 2 * factor
        elif self.type == 4:
            return DftProblem(n // 2, dtype, rows, scale=2 * factor)
        kind = "c2r" if self.type == 3 else "r2c"
        return DftProblem(n, dtype, rows, scale=factor, kind=kind)

    def plan(self, config: Config, device: Device) -> Plan:
        """Plan the pre-processing, the Fourier transforms, and the post-processing."""
        n, rows, fourier = self.n, self.rows, self.fourier
        real = fourier.real
        builder = PlanBuilder(self.dtype)
        builder.add("signal", "in", (rows, n), real)
        builder.add("result", "out", (rows, n), real)
        sources, targets = (shape[1] for shape, _ in (fourier.signal, fourier.spectrum))
        numbers = builder.scratch("numbers", sources * rows, fourier.signal[1])
        spectrum = builder.scratch("numbers", targets * rows, fourier.spectrum[1])
        # Results of type 1 are a section of a spectrum; those by odd frequencies are in pairs.
        points = n if self.type == 1 else (n + 1) // 2 if self.padded else targets
        roots: Arguments = {}
        if self.type > 1:
            first, step, order = (0, 1, 4 * n) if self.type < 4 else (1, 8, 16 * n)
            if self.padded:
                first, step, order = 1, 2, 8 * n
            count = sources if self.type == 3 else points
            made = (count, step, order, self.dtype, first)
            roots = {
                "twiddles": builder.table("twiddles", count, self.dtype, strided_twiddles, *made)
            }
        early = self.type == 3 or fourier.kind == "c2c"
        late = self.type in (2, 4)
        root = math.sqrt(2) if self.ortho else 1.0

        def kernel(name: str, points: int, ends: Arguments, turned: bool, weight: float) -> None:
            arguments: Arguments = {
                **ends, **(roots if turned else {}), "n": n, "points": points,
                "weight": real.type(weight),
            }  # fmt: skip
            over_rows(
                builder, device, (TEMPLATE, name), points, rows, arguments,
                TYPE=self.type, SINE=self.sine, PADDED=self.padded,
            )  # fmt: skip

        kernel("before", sources, {"signal": "signal", "numbers": numbers}, early, root)
        FFT.add(builder, fourier, numbers, spectrum, config, device)
        kernel("after", points, {"numbers": spectrum, "result": "result"}, late, 1 / root)
        return builder.finish()


def cosine_axis(
    array: AnyArray,
    real: np.dtype[Any],
    n: int | None,
    axis: int,
    kind: CosineKind,
    call: Call,
    out: AnyArray | None = None,
) -> AnyArray:
    """Transform real numbers in float32 or float64, `real`, along one axis, to length `n`."""
    axis = axis_of(axis, array.ndim)
    n = array.shape[axis] if n is None else whole(n, "n")
    factor = kind.factor(n)
    rows = Rows.of(array, axis, call, length=n, dtype=real)
    if not rows.data.size:
        return finish(empty(rows.data, rows.shape, real, call), out, call)
    dtype = np.result_type(real, np.complex64)
    type = INVERSES[kind.type] if kind.inverse else kind.type
    problem = _Cosine(type, kind.sine, n, rows.count, dtype, factor, kind.ortho)
    fourier = problem.fourier
    call.move(lambda device: DFT_SOLVER.side(fourier, device))
    device = call.device
    fast = DFT_SOLVER.choose(fourier, device, FFT.name, internal=True)
    config = fast.configure(fourier, device)
    executable = call.session.executable(
        ("cosine", problem, config), lambda: problem.plan(config, device)
    )
    target = rows.target(out, real)
    given = {} if target is None else {"result": target}
    result = call.execute(executable, {"signal": rows.data}, given).outputs["result"]
    return rows.restore(result, out, call)


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
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

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
    wait_for
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
