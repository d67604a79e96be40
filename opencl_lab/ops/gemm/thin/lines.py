"""Products with few rows or few columns: one factor is the matrix, the other one a few vectors."""

from __future__ import annotations

from opencl_lab.ops.gemm.problem import GemmProblem

__all__ = ["few_of", "is_along", "is_other_along", "lines_of", "side_of"]


def side_of(problem: GemmProblem) -> str:
    """Return which factor is the matrix, ``a`` or ``b``; the other one has few lines."""
    return "a" if problem.n < problem.m or (problem.n == problem.m and problem.trans_b) else "b"


def few_of(problem: GemmProblem) -> int:
    """Return how many vectors the matrix is multiplied by."""
    return max(1, min(problem.m, problem.n))


def lines_of(problem: GemmProblem) -> int:
    """Return how many rows of a, or columns of b, the matrix has."""
    return max(1, problem.m, problem.n)


def is_along(problem: GemmProblem) -> bool:
    """Return whether the lines of the matrix lie along k in memory; a single line always does."""
    if lines_of(problem) == 1:
        return True
    return not problem.trans_a if side_of(problem) == "a" else problem.trans_b


def is_other_along(problem: GemmProblem) -> bool:
    """Return whether the few vectors lie along k in memory; a single one always does."""
    if few_of(problem) == 1:
        return True
    return problem.trans_b if side_of(problem) == "a" else not problem.trans_a
