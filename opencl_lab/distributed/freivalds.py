"""Freivalds' check of a product of distributed matrices (1977)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from opencl_lab.core.errors import OclabError
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.mpi import agreed, everywhere, mpi
from opencl_lab.ops.gemm.problem import GemmProblem

TRIALS = 2
"""Random vectors."""
SAFETY = 16.0
"""Errors that are so many times larger than expected are no rounding."""
TF32 = 2.0**-10
"""Roundings of both factors in TF32."""


class WrongProduct(OclabError):
    """Freivalds' check found that a product is wrong."""


def verify_product(
    result: DistArray, a: DistArray, b: DistArray, c: DistArray | None, problem: GemmProblem
) -> None:
    """Compare products with random vectors of -1 and 1, which take n**2 operations.

    An element of a product, of sums of k terms, has an error of about ``sqrt(k)`` roundings of its
    largest partial sum, which is at most the norms of its row of `a` and its column of `b`. Over a
    row of the result, errors have random signs in the product with the vector.
    """
    comm, kind = result.comm, problem.dtype.kind
    exact = kind not in "fc"
    wide = np.dtype(np.int64) if exact else np.result_type(problem.dtype, np.float64)
    rng = np.random.default_rng(comm.bcast(np.random.SeedSequence().entropy, root=0))
    for _ in range(TRIALS):
        x = rng.choice([-1, 1], problem.n).astype(wide)
        with np.errstate(all="ignore"):
            middle = _times(b, x, problem, "b")
            expected = problem.alpha * _times(a, middle, problem, "a")
            if c is not None:
                expected = expected + problem.beta * _times(c, x)
        seen = _times(result, x)
        if exact:
            wrong = seen.astype(problem.dtype) != expected.astype(problem.dtype)
        else:
            sums, size = _rounding(result, a, b, c, problem)
            wrong = ~(np.abs(seen - expected) <= SAFETY * sums)
            wrong &= np.isfinite(expected) & (size < np.finfo(problem.dtype).max)
        if not everywhere(comm, not wrong.any()):
            count = np.count_nonzero(wrong)
            agreed(comm, partial(_refuse, f"{count} of {problem.m} rows of the product are wrong"))


def _rounding(
    result: DistArray, a: DistArray, b: DistArray, c: DistArray | None, problem: GemmProblem
) -> tuple[Array, Array]:
    """Return about the rounding error of each row times a vector, and a bound of its elements."""
    out = float(np.finfo(problem.dtype).eps)
    half = problem.dtype == np.float16  # summed in float32
    inside = float(np.finfo(np.float32).eps) if half else out
    ones = np.ones(problem.n)
    columns = _times(b, ones, problem, "b", squared=True)
    all_of_b = math.sqrt(float(columns.sum()))
    rows = np.sqrt(_times(a, np.ones(problem.k), problem, "a", squared=True))
    size = abs(problem.alpha) * rows * all_of_b
    inside *= math.sqrt(problem.k + 1)
    if problem.precision == "tf32":
        inside += TF32
    lengths = np.sqrt(_times(result, ones, squared=True))
    sums = inside * size + out * np.fmin(lengths, size)  # wrong results may have any length
    if c is not None:
        of_c = abs(problem.beta) * np.sqrt(_times(c, ones, squared=True))
        sums, size = sums + out * of_c, size + of_c
    return sums, size


def _refuse(text: str) -> None:
    raise WrongProduct(text)


def _times(
    matrix: DistArray,
    x: Array,
    problem: GemmProblem | None = None,
    name: str = "",
    squared: bool = False,
) -> Array:
    """Return the product of a matrix, as `problem` takes it, and a vector that all ranks have.

    With `squared`, the squares of the magnitudes of its elements take their place.
    """
    local = matrix.host()
    rows, columns = (
        np.concatenate([np.arange(*run) for run in runs] or [np.arange(0)])
        for runs in matrix.layout.runs(matrix.comm.rank)
    )
    length = matrix.shape[0]
    if problem is not None and getattr(problem, f"trans_{name}"):
        local, rows, columns, length = local.T, columns, rows, matrix.shape[1]
        local = local.conj() if getattr(problem, f"conj_{name}") else local
    wide = np.result_type(local.dtype, x.dtype)
    result = np.zeros(length, np.float64 if squared else wide)
    with np.errstate(all="ignore"):
        values = np.abs(local.astype(wide)) ** 2 if squared else local.astype(wide)
        result[rows] = values @ x[columns]
    matrix.comm.Allreduce(mpi().IN_PLACE, result, op=mpi().SUM)
    return result
