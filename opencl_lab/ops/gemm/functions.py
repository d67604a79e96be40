"""The public function of the matrix product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.gemm.bind import bind, result_shape, shaped
from opencl_lab.ops.gemm.problem import Activation, Precision
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    direct_target,
    is_device_array,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed

LARGE = 1 << 20
"""Bytes of matrices from which it may pay, or be needed, to multiply tile by tile."""


@replayed()
def gemm(
    call: Call,
    a: Any,
    b: Any,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    c: Any = None,
    trans_a: bool | str | int = False,
    trans_b: bool | str | int = False,
    bias: Any = None,
    activation: Activation | None = None,
    precision: Precision = "native",
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Return ``activation(alpha * op(a) @ op(b) + beta * c + bias)``.

    Here op transposes if asked, or takes the conjugate transpose.

    Large arrays of the host are multiplied tile by tile where copies take long, or where they take
    more memory than the device has (or than ``OCLAB_DEVICE_BYTES``).

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Matrices of float16, float32, float64, complex64, complex128 or integers of 8 to 64 bits,
        all arrays of one dtype, all on the host or all on a device; any strides. Of more than
        two dimensions they are stacks of matrices, which broadcast as those of `numpy.matmul`:
        shapes ``(..., m, k)`` and ``(..., k, n)``. As there, a vector `a` is one row, a vector
        `b` one column, and the result does not have that dimension. A transposed view such as
        ``x.T`` or ``x.swapaxes(-1, -2)`` is not copied, and what is broadcast is not repeated in
        memory. Products of float16 are added up in float32, and rounded once, at the end.
        Integers wrap around, as NumPy's do.
    alpha, beta : float or complex
        Complex for complex matrices only, whole for integers. As in BLAS: with ``beta=0``, `c` is
        not read; with ``alpha=0``, `a` and `b` are not read, so that NaN in them does not reach
        the result.
        They are rounded to the dtype, float32 for float16: there 1e40 is an infinity and 1e-50
        is zero. Of complex matrices they are complex numbers even where they are real, also
        ``alpha=1``: so a sum with an infinite part becomes NaN in the other, as in BLAS and so in
        `numpy.matmul`. A `c` that counts once is added as it is.
    c : array_like or pyopencl.array.Array, optional
        Of the shape of the result; needed where `beta` is not 0. It is not
        changed, unless `out` is `c`.
    trans_a, trans_b : bool, or "N", "T", "C", or 0, 1, 2
        Multiply by the transposes of the matrices of `a`, of `b`: their last two dimensions
        change places; a vector stays one row or column. The words are those of BLAS, in either
        case, the numbers those of `scipy.linalg.blas`; "C" and 2 are the conjugate transpose.
    bias : array_like or pyopencl.array.Array, optional
        What is added to all matrices of the result: a number for each column, of shape ``(n,)``
        or ``(1, n)``, or for each row, ``(m, 1)``. For a vector it has the length of the result.
    activation : str, optional
        ``"relu"``, which keeps NaN, or ``"gelu"``, by the error function; of floating-point
        numbers that are real.
    precision : str
        Of float32. ``"native"``: the arithmetic is that of the dtype. ``"3xtf32"`` and ``"tf32"``
        let matrix units multiply, in two parts of 11 bits a number, which is as accurate, or in
        one. Where there are no such units, or too little for them to do, the product is native.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``gemm``, of which ``"naive"`` and
        ``"tiled"`` multiply integers; or ``"hybrid"``: arrays of
        the host are multiplied by NumPy's BLAS where that is expected to take less time, by what
        was measured on both sides (at the first such call, which takes some seconds longer).
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result; may be any of the inputs. Shape and dtype of the result.
    queue : pyopencl.CommandQueue, optional
        Where to multiply host arrays; default: the library's queue on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the kind and dtype of `a`, of shape ``(..., m, n)``, less the dimensions of vectors; of
        two vectors of the host it is a number. With device arrays the product is enqueued on the
        queue of `a` and not waited for.

    Raises
    ------
    InvalidProblem
        For shapes that do not fit each other, an unsupported or mixed dtype, a single
        number as `a` or `b`, an unknown precision or activation, a complex factor of real
        matrices, one of integers that is not whole, a missing `c`, a wrong `bias` or `out`, or
        arrays that do not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm, one that does not solve this problem, or a configuration that
        the device cannot run.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    given = {"a": a, "b": b, "c": c, "bias": bias}
    arrays = {name: as_array(array) for name, array in given.items() if array is not None}
    call.use(arrays["a"], queue, device)
    for array in arrays.values():
        call.check(array)
    problem, inputs = bind(
        arrays["a"],
        arrays["b"],
        arrays.get("c"),
        alpha=alpha,
        beta=beta,
        trans_a=trans_a,
        trans_b=trans_b,
        precision=precision,
        bias=arrays.get("bias"),
        activation=activation,
        call=call,
    )
    shape = result_shape(arrays["a"], arrays["b"], trans_a, trans_b)
    target = direct_target(out, shape, problem.dtype, tuple(arrays.values()))
    place = None if target is None else shaped(target, problem.shape, call)
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "call": call}
    result = None
    nbytes = max(problem.work.bytes, sum(array.nbytes for array in inputs.values()))
    if algorithm == HYBRID or nbytes >= LARGE:
        from opencl_lab.ops.gemm.host.elsewhere import multiply_elsewhere

        result, how["algorithm"] = multiply_elsewhere(problem, inputs, place, **how, function=gemm)
    if result is None:
        result = GEMM_SOLVER.run(problem, inputs, out={"result": place}, **how).outputs["result"]
    if target is not None:
        return target
    result = shaped(result, shape, call)
    if out is None:
        return result if shape or is_device_array(result) else result[()]
    assign(out, result, call)
    return out
