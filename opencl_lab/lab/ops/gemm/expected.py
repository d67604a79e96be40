"""The expected result of a matrix product, and the error bound of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import (
    UNLIKE,
    Difference,
    errors_of,
    growth,
    largest_share,
    over_blocks,
)
from opencl_lab.lab.ops.gemm.freivalds import TF32
from opencl_lab.lab.ops.gemm.references import gelu
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.gemm.host.blas import factors
from opencl_lab.ops.gemm.problem import GemmProblem

Array = np.ndarray[Any, Any]

GELU_SLOPE = 1.13
"""Largest slope of GELU."""
GELU_TERMS = 24
"""Rounding errors of GELU, as terms of a sum: erf of OpenCL C has an error of 16 ulp."""


def _wide(problem: GemmProblem) -> Any:
    return np.complex128 if problem.is_complex else np.float64


def expected_result(problem: GemmProblem, inputs: Arrays) -> Array:
    """Return the result by the host's BLAS in float64 or complex128, rounded once."""
    wide = _wide(problem)
    result = np.zeros(problem.shape, wide)
    with np.errstate(invalid="ignore", over="ignore"):
        if problem.depth:
            a, b = _wide_factors(problem, inputs)
            np.matmul(a, b, out=result)
            if problem.alpha != 1:
                result *= wide(problem.alpha)
        if problem.beta:
            result += wide(problem.beta) * inputs["c"].astype(wide)
        if problem.bias:
            result += _along(problem, inputs["bias"].astype(wide))
        if problem.activation == "relu":
            np.maximum(result, 0, out=result)
        elif problem.activation == "gelu":
            result = gelu(result)
        return result.astype(problem.dtype)


def _wide_factors(problem: GemmProblem, inputs: Arrays) -> tuple[Array, ...]:
    """Return op(a) and op(b) in float64 or complex128."""
    return tuple(matrix.astype(_wide(problem)) for matrix in factors(problem, inputs))


def _along(problem: GemmProblem, bias: Array) -> Array:
    """Return a bias in the shape in which it is added to a matrix."""
    return bias[:, None] if problem.bias == "row" else bias[None, :]


def compare(
    problem: GemmProblem, inputs: Arrays, right: Array, given: Array, chunk: int
) -> Difference:
    """Compare within the a-priori error bound of a sum of k products.

    In any order of summation, the error is at most ``gamma |a| |b|``, see `growth`. By the
    Cauchy-Schwarz inequality the norms of the rows of a and of the columns of b bound ``|a| |b|``.
    The magnitudes of C and of the bias are added, and a few roundings for the factors and the
    expected result. A complex sum consists of two real ones with twice as many terms. The
    truncation to TF32 is included if `precision` allows it. Where partial sums may be too large for
    their type, as in any BLAS, an infinity or NaN is right, too. Rounding the sum to a shorter type
    counts once, and once more for each operation of the epilogue, since libraries without one
    round after each. `chunk` elements are compared together.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return UNLIKE
    bound = _Bound(problem, inputs)
    stacked = (problem.batch, problem.m, problem.n)
    right, given = right.reshape(stacked), given.reshape(stacked)

    def of_block(block: tuple[slice, slice]) -> tuple[Array, Array, float]:
        reference, found = (_values(problem, array[block]) for array in (right, given))
        error, relative = errors_of(reference, found)
        if not (finite := np.isfinite(found)).all():
            overflown = ~finite & bound.may_overflow(block)
            error[overflown] = relative[overflown] = 0
        with np.errstate(invalid="ignore", over="ignore"):
            return error, relative, largest_share(error, bound.of(block, np.abs(reference)))

    return over_blocks(_blocks(problem, chunk), of_block)


def _values(problem: GemmProblem, array: Array) -> Array:
    """Return numbers in float64 or complex128.

    Complex infinities become NaN, since it is unspecified which component is infinite.
    """
    wide = array.astype(_wide(problem))
    return np.where(np.isfinite(wide), wide, np.nan) if problem.is_complex else wide


def _blocks(problem: GemmProblem, chunk: int) -> Iterator[tuple[slice, slice]]:
    """Yield the blocks of the result: products, and their rows."""
    products = max(1, chunk // max(problem.m * problem.n, 1))
    rows = max(1, chunk // max(problem.n, 1))
    for product in range(0, problem.batch, products):
        for row in range(0, problem.m, rows):
            yield slice(product, product + products), slice(row, row + rows)


class _Bound:
    """The error bounds of the elements of a result."""

    def __init__(self, problem: GemmProblem, inputs: Arrays):
        self._problem = problem
        self._inputs = inputs
        terms = (problem.depth + 4) * problem.components
        terms += GELU_TERMS if problem.activation == "gelu" else 0
        self._gamma = growth(terms, problem.real_type) * (np.sqrt(2) if problem.is_complex else 1)
        if problem.precision == "tf32":
            self._gamma += TF32
        self._least = terms * float(np.finfo(problem.real_type).tiny)
        self._rounding = 0.0
        if problem.dtype != problem.sum_type:
            epilogue = (problem.alpha != 1, problem.beta, problem.bias, problem.activation)
            kept = np.finfo(problem.dtype)
            self._rounding = float(kept.eps) * (1 + sum(map(bool, epilogue)))
            self._least += float(kept.smallest_subnormal)
        self._largest = float(np.finfo(problem.sum_type).max)
        self._rows, self._columns = self._norms()

    def _norms(self) -> tuple[Array, Array]:
        """Return the norms of all rows of a and of all columns of b."""
        problem = self._problem
        shape = problem.shape[:-2]
        if not problem.depth:
            return np.zeros((problem.batch, problem.m)), np.zeros((problem.batch, problem.n))
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = _wide_factors(problem, self._inputs)
            rows = _norms(a)
            columns = _norms(b.swapaxes(-1, -2))
        return tuple(
            np.broadcast_to(norms, (*shape, length)).reshape(problem.batch, length)
            for norms, length in ((rows, problem.m), (columns, problem.n))
        )  # type: ignore[return-value]

    def may_overflow(self, part: tuple[slice, slice]) -> Array:
        """Return where partial sums of finite numbers may be too large for their type."""
        with np.errstate(invalid="ignore", over="ignore"):
            sums = self._sums(part)
            magnitudes = np.maximum(sums, np.abs(self._problem.alpha) * sums + self._added(part))
        products, rows = part
        finite = np.isfinite(self._rows[products, rows, None] + self._columns[products, None, :])
        overflown: Array = finite & ~(magnitudes <= self._largest)
        return overflown

    def _sums(self, part: tuple[slice, slice]) -> Array:
        """Return bounds of the sums of products of a block."""
        products, rows = part
        sums: Array = self._rows[products, rows, None] * self._columns[products, None, :]
        return sums

    def _added(self, part: tuple[slice, slice]) -> Array:
        """Return the magnitudes that are added to the products of a block."""
        problem = self._problem
        added = np.zeros((1, 1, 1))
        if problem.beta:
            c = self._inputs["c"].reshape(problem.batch, problem.m, problem.n)[part]
            added = added + np.abs(problem.beta) * np.abs(c.astype(_wide(problem)))
        if problem.bias:
            bias = np.abs(self._inputs["bias"].astype(_wide(problem)))
            bias = bias[part[1]] if problem.bias == "row" else bias
            added = added + _along(problem, bias)
        return added

    def of(self, part: tuple[slice, slice], reference: Array) -> Array:
        """Return the bounds of a block of the result, whose expected magnitudes are given."""
        problem, added = self._problem, self._added(part)
        norms = np.abs(problem.alpha) * self._sums(part)
        slope = GELU_SLOPE if problem.activation == "gelu" else 1.0
        bounds: Array = slope * self._gamma * (norms + added) + self._least
        # The error of the expected result is added.
        bounds += self._gamma * reference
        if self._rounding:
            bounds += self._rounding * (reference + added + (0.5 if slope != 1 else 0))
        return bounds


def _norms(matrices: Array) -> Array:
    """Return the norms of rows; scaled, as squares overflow where norms do not."""
    largest = float(np.max(np.abs(matrices), initial=0))
    scale = largest if 1e150 < largest < np.inf else 1.0
    scaled = matrices if scale == 1 else matrices / scale
    norms: Array = scale * np.linalg.norm(scaled, axis=-1)
    return norms
