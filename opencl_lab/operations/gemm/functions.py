"""The public function of the matrix product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.operations.gemm.bind import bind
from opencl_lab.operations.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.runtime.arrays import AnyArray, as_array, assign, direct_target, queue_for
from opencl_lab.runtime.replay import replayed

__all__ = ["gemm"]

LARGE = 1 << 20
"""Bytes of matrices from which it may pay, or be needed, to multiply tile by tile."""


@replayed()
def gemm(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: Any = None,
    trans_a: bool | str | int = False,
    trans_b: bool | str | int = False,
    precision: str = "native",
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
) -> AnyArray:
    """Return ``alpha * op(a) @ op(b) + beta * c``, where op transposes if asked.

    Large arrays of the host are multiplied tile by tile where copies take long, or where they take
    more memory than the device has (or than ``OCLAB_DEVICE_BYTES``).

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Matrices of float32 or of float64, both on the host or both on a device;
        any shape, any strides. A transposed view such as ``x.T`` is not copied.
    alpha, beta : float
        As in BLAS: with ``beta=0``, `c` is not read; with ``alpha=0``, `a` and
        `b` are not read, so that NaN in them does not reach the result. They are rounded
        to the dtype: for float32, 1e40 is an infinity and 1e-50 is zero.
    c : array_like or pyopencl.array.Array, optional
        Of the shape of the result; needed where `beta` is not 0. It is not
        changed, unless `out` is `c`.
    trans_a, trans_b : bool, or "N", "T", "C", or 0, 1, 2
        Multiply by the transpose of `a`, of `b`. The words are those of BLAS, in either case, the
        numbers those of `scipy.linalg.blas`; the conjugate transpose is the transpose here.
    precision : str
        ``"native"``: the arithmetic is that of the dtype.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``gemm``; or ``"hybrid"``: arrays of
        the host are multiplied by NumPy's BLAS where that is expected to take less time, by what
        was measured on both sides (at the first such call, which takes some seconds longer).
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result; may be any of the inputs. Shape and dtype of the result.
    queue : pyopencl.CommandQueue, optional
        Where to multiply host arrays; default: the library's queue on `select_device()`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the kind and dtype of `a`. With device arrays the product is enqueued
        on the queue of `a` and not waited for.

    Raises
    ------
    InvalidProblem
        For shapes that do not fit each other, an unsupported or mixed dtype, more
        than two dimensions, an unknown precision, a missing `c`, a wrong `out`, or
        arrays that do not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm or a configuration that the device cannot run.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    matrices = tuple(as_array(matrix) for matrix in ((a, b) if c is None else (a, b, c)))
    queue = queue_for(matrices[0], queue)
    for matrix in matrices[1:]:
        queue_for(matrix, queue)
    problem, inputs = bind(
        matrices[0],
        matrices[1],
        None if c is None else matrices[2],
        alpha=alpha,
        beta=beta,
        trans_a=trans_a,
        trans_b=trans_b,
        precision=precision,
        queue=queue,
    )
    target = direct_target(out, (problem.m, problem.n), problem.dtype, matrices)
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "queue": queue}
    result = None
    nbytes = max(problem.work.bytes, sum(array.nbytes for array in inputs.values()))
    if algorithm == HYBRID or nbytes >= LARGE:
        from opencl_lab.operations.gemm.elsewhere import multiply_elsewhere

        result, how["algorithm"] = multiply_elsewhere(problem, inputs, target, **how, call=gemm)
    if result is None:
        out_arrays = {} if target is None else {"result": target}
        result = GEMM_SOLVER.run(problem, inputs, out=out_arrays, **how).outputs["result"]
    if out is None or target is not None:
        return result
    assign(out, result, queue)
    return out
