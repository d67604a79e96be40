"""Freivalds' check of a matrix product, without computing it again.

For a vector x of random signs, both sides of ``C x = alpha op(A) (op(B) x) + beta C0 x + ...`` take
a few operations for each element, while the product takes k (R. Freivalds, "Probabilistic machines
can use less running time", 1977). They are computed in float64.

The error bound of a row: an element of C has an error of k roundings, each at most ``u |a| |b|``
with the norms of its row of A and its column of B. A row of ``C x`` is the sum of all errors of its
row with random signs that are independent of them. So, by Hoeffding's inequality, its error exceeds

    t u growth |a_i| |B|    with |B| in the Frobenius norm

with a probability of at most ``2 exp(-t^2 / 2)``, where growth is k for any order and bias of the
roundings, and ``sqrt(k)`` for rounding to nearest, which is up as often as down (N. Higham and
T. Mary, "A new approach to probabilistic rounding error analysis", 2019). t is chosen so that a
correct result is refused with a probability of 1e-9. If the error of an element of C exceeds the
bound of its row, the row exceeds it for at least one of two vectors that differ only in the sign
for that element; so each vector detects it with a probability of at least one half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.memory import host_memory
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.measuring.difference import UNLIKE, Difference, errors_of, largest_share
from opencl_lab.ops.gemm.host.blas import factors
from opencl_lab.ops.gemm.problem import GemmProblem

Array = np.ndarray[Any, Any]

VECTORS = 20
"""A wrong element is missed with a probability of at most 2^-20."""
FLOPS = 1e11
"""Operations of a product in float64 for each processor, which take some seconds."""
MEMORY = 0.5
"""Share of the host's memory that the expected result and float64 copies may take."""
REFUSED = 1e-9
"""Largest probability that a correct result is refused."""
NEAREST = 1 << 20
"""Longest sums for which rounding up and down is assumed to be equally frequent."""
TF32 = 2.0**-9
"""Relative error of a product of two numbers truncated to the 11 bits of TF32."""
CHUNK = 1 << 22
"""Number of elements that are converted to float64 together."""


class _StandIn(np.ndarray[Any, Any]):
    """A placeholder with the shape and type of an expected result that is not computed."""


def too_large(problem: GemmProblem) -> bool:
    """Return whether the expected result takes too much time or memory."""
    if problem.activation:  # not linear
        return False
    wide = 16 if problem.is_complex else 8
    elements = sum(map(math.prod, (problem.shape_a, problem.shape_b, problem.shape)))
    needs = wide * (elements + math.prod(problem.shape))
    return problem.work.flops > FLOPS * default_threads() or needs > MEMORY * host_memory()


def stand_in(problem: GemmProblem) -> Array:
    """Return a placeholder for the expected result; it takes no memory."""
    return np.broadcast_to(np.zeros((), problem.dtype), problem.shape).view(_StandIn)


def stands_in(expected: Array) -> bool:
    """Return whether an expected result is a placeholder."""
    return isinstance(expected, _StandIn)


def check(
    problem: GemmProblem,
    inputs: Mapping[str, Array],
    given: Array,
    *,
    vectors: int = VECTORS,
    seed: int = 0,
) -> Difference:
    """Check a result with random vectors, drawn with `seed`; the problem has no activation.

    The difference has the `error_over_bound` of the worst row; errors of elements are unknown.
    """
    if given.shape != problem.shape or given.dtype != problem.dtype:
        return UNLIKE
    rng = np.random.default_rng(seed)
    signs = 2.0 * rng.integers(0, 2, (problem.n, vectors)) - 1
    a, b = (
        np.broadcast_to(matrix, (*problem.shape[:-2], *matrix.shape[-2:]))
        for matrix in factors(problem, inputs)
    )
    worst = 0.0
    with np.errstate(all="ignore"):
        for index in np.ndindex(*problem.shape[:-2]):
            worst = max(worst, _worst_row(problem, inputs, a, b, given, index, signs))
    missed = f"{2.0**-vectors:.0e}".replace("e-0", "e-")
    checked = f"checked by Freivalds, {vectors} vectors: misses a wrong element with p = {missed}"
    return Difference(math.nan, math.nan, error_over_bound=worst, checked=checked)


def _worst_row(
    problem: GemmProblem,
    inputs: Mapping[str, Array],
    a: Array,
    b: Array,
    given: Array,
    index: tuple[int, ...],
    signs: Array,
) -> float:
    """Return the largest ratio of a row's error to its bound, in one product of the stack."""
    rows, columns = np.zeros(problem.m), 0.0
    right = np.zeros((problem.m, signs.shape[1]))
    if problem.depth:
        right = problem.alpha * _times(a[index], _times(b[index], signs))
        rows = abs(problem.alpha) * _norms(a[index])
        columns = float(np.sqrt(np.sum(_norms(b[index]) ** 2)))
    size = rows * columns
    if problem.beta:
        c = inputs["c"][index]
        right = right + problem.beta * _times(c, signs)
        size = size + abs(problem.beta) * _norms(c)
    if problem.bias:
        bias = inputs["bias"].astype(right.dtype)
        right = right + (
            bias[:, None] * signs.sum(0) if problem.bias == "row" else (bias @ signs)[None]
        )
        size = size + math.sqrt(problem.n) * float(np.max(np.abs(bias), initial=0))
    made = given[index]
    found = _times(made, signs).astype(right.dtype)
    error, _ = errors_of(right, found)
    # Where partial sums may be too large for their type, an infinity or NaN is right, too.
    error[~np.isfinite(found) & (np.finfo(problem.sum_type).max < size)[:, None]] = 0
    return largest_share(error, _bound(problem, size, _norms(made), signs.shape[1])[:, None])


def _bound(problem: GemmProblem, size: Array, result: Array, vectors: int) -> Array:
    """Return how far rows may be off, from the norms of what is added up and of the result."""
    tail = math.sqrt(2 * math.log(2 * max(problem.m * problem.batch * vectors, 1) / REFUSED))
    terms = problem.depth + 4
    unit = float(np.finfo(problem.sum_type).eps) / 2
    growth = math.sqrt(terms) * unit
    if terms > NEAREST or problem.precision != "native":
        growth = terms * unit
    if problem.precision == "tf32":
        growth += TF32
    if problem.is_complex:
        growth *= 4
    stored = float(np.finfo(problem.dtype).eps) / 2 + unit
    least = math.sqrt(problem.n) * terms * float(np.finfo(problem.dtype).tiny)
    bound: Array = tail * (2 * growth * size + stored * result) + least
    return bound


def _parts(matrix: Array) -> range:
    return range(0, matrix.shape[0], max(1, CHUNK // max(matrix.shape[1], 1)))


def _times(matrix: Array, vectors: Array) -> Array:
    """Return the product with some vectors in float64 or complex128."""
    wide = np.result_type(matrix.dtype, np.float64)
    made = np.empty((matrix.shape[0], vectors.shape[1]), np.result_type(wide, vectors))
    parts = _parts(matrix)
    for begin in parts:
        rows = slice(begin, begin + parts.step)
        made[rows] = matrix[rows].astype(wide) @ vectors
    return made


def _norms(matrix: Array) -> Array:
    """Return the norms of rows."""
    made, parts = np.empty(matrix.shape[0]), _parts(matrix)
    for begin in parts:
        some = np.abs(matrix[begin : begin + parts.step]).astype(np.float64)
        made[begin : begin + parts.step] = np.sqrt(np.einsum("ij,ij->i", some, some))
    return made
