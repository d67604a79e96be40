"""Parts of k of a product with few rows or few columns: how many, and who adds up their sums."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.gemm.problem import GemmProblem

__all__ = ["joins", "worth_splits"]


def joins(device: Device) -> bool:
    """Return whether groups add up their sums themselves: if they see what others have written."""
    return device.capabilities.visible_writes


def worth_splits(problem: GemmProblem, groups: int, wanted: int, part: int) -> int:
    """Return in how many parts of k so many groups become as many as wanted, if that pays."""
    work = (problem.m + problem.n) * problem.depth * problem.batch * problem.dtype.itemsize
    return max(1, min(ceil_divide(wanted, groups), work // (groups * part)))
