"""Products with few rows or few columns: one factor is the matrix, the other one a few vectors."""

from __future__ import annotations

from dataclasses import dataclass

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.gemm.problem import GemmProblem


def side_of(problem: GemmProblem) -> str:
    """Return which factor is the matrix, ``a`` or ``b``; the other one is the few vectors."""
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


def joins(device: Device) -> bool:
    """Return whether groups add up slices themselves: if they see what others have written."""
    return device.capabilities.visible_writes


def worth_splits(problem: GemmProblem, groups: int, wanted: int, least: int) -> int:
    """Return in how many slices of k so many groups become as many as wanted, if that pays.

    A slice has at least so many bytes of both factors.
    """
    work = (problem.m + problem.n) * problem.depth * problem.batch * problem.dtype.itemsize
    return max(1, min(ceil_divide(wanted, groups), work // (groups * least)))


@dataclass(frozen=True)
class Thin:
    """What templates know of a matrix, and of the few vectors that it is multiplied by: x."""

    side: str  # which factor is the matrix: ``a`` or ``b``
    few: int  # lines of the other one, x
    # Whether the lines of the matrix, and those of x, lie along k in memory.
    along: bool
    x_along: bool
    # Whether each counts by its complex conjugate.
    conjugated: bool
    x_conjugated: bool

    @classmethod
    def of(cls, problem: GemmProblem) -> Thin:
        """Return what templates know of a problem."""
        conjugated = (problem.conj_a, problem.conj_b)
        if side_of(problem) == "b":
            conjugated = conjugated[::-1]
        return cls(
            side_of(problem),
            few_of(problem),
            is_along(problem),
            is_other_along(problem),
            *conjugated,
        )
