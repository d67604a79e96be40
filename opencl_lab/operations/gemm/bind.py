"""How a user's matrices become a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.operations.gemm.problem import GemmProblem, is_transposed
from opencl_lab.runtime.arrays import AnyArray, contiguous, is_device_array, is_plain
from opencl_lab.solver import real_number
from opencl_lab.wording import counted

__all__ = ["REAL_TYPES", "bind"]

REAL_TYPES = ("float32", "float64")


def _check_matrices(matrices: Mapping[str, AnyArray]) -> None:
    """Require matrices of one dtype on one side."""
    for name, matrix in matrices.items():
        if matrix.ndim > 2:
            raise InvalidProblem(
                f"{name} has {matrix.ndim} dimensions; gemm takes one product of matrices at a "
                "time, batches are not supported: call it for each matrix"
            )
        if matrix.ndim < 2:
            raise InvalidProblem(
                f"{name} has {counted(matrix.ndim, 'dimension')}, not 2; reshape a vector to one "
                "row or column"
            )
    if len({is_device_array(matrix) for matrix in matrices.values()}) > 1:
        raise InvalidProblem(
            f"{', '.join(matrices)} must all be host arrays or all be device arrays"
        )
    names = {name: matrix.dtype.name for name, matrix in matrices.items()}
    if not set(names.values()) <= set(REAL_TYPES) or len(set(names.values())) > 1:
        found = ", ".join(f"{name} is {dtype}" for name, dtype in names.items())
        raise InvalidProblem(
            f"the matrices must all be {' or all '.join(REAL_TYPES)}: {found}; "
            "convert with astype (on the command line: --dtype float64), nothing is converted "
            "silently"
        )


def _stored(array: AnyArray, queue: Any) -> tuple[AnyArray, bool]:
    """Return a plain array, and whether it is the transpose of `array`; copy only if it must."""
    if not is_plain(array) and is_plain(array.T):
        return array.T, True
    return contiguous(array, queue), False


def bind(
    a: AnyArray,
    b: AnyArray,
    c: AnyArray | None,
    *,
    alpha: Any,
    beta: Any,
    trans_a: Any,
    trans_b: Any,
    precision: str,
    queue: Any = None,
) -> tuple[GemmProblem, dict[str, AnyArray]]:
    """Return the problem of a user's matrices, and these as its inputs."""
    alpha, beta = real_number(alpha, "alpha"), real_number(beta, "beta")
    trans_a, trans_b = is_transposed(trans_a, "trans_a"), is_transposed(trans_b, "trans_b")
    matrices = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    _check_matrices(matrices)
    m, k = a.shape[::-1] if trans_a else a.shape
    rows_b, n = b.shape[::-1] if trans_b else b.shape
    if k != rows_b:
        raise InvalidProblem(
            f"a gives sums of length {k} and b of length {rows_b}: "
            f"a is {a.shape[0]} x {a.shape[1]}{', transposed' if trans_a else ''}, "
            f"b is {b.shape[0]} x {b.shape[1]}{', transposed' if trans_b else ''}"
        )
    if c is not None and tuple(c.shape) != (m, n):
        raise InvalidProblem(f"c must have the shape of the result, {(m, n)}, not {tuple(c.shape)}")
    inputs = {}
    inputs["a"], turned_a = _stored(a, queue)
    inputs["b"], turned_b = _stored(b, queue)
    dtype = np.dtype(a.dtype.name)
    trans_a, trans_b = trans_a != turned_a, trans_b != turned_b
    problem = GemmProblem(m, n, k, dtype, alpha, beta, trans_a, trans_b, precision)
    if problem.beta:
        if c is None:
            raise InvalidProblem(f"beta is {beta:g}, so c is needed")
        inputs["c"] = contiguous(c, queue)
    return problem, inputs
