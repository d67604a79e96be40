"""Whether matrix units can read the user's matrices in place, without packing."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.ops.gemm.problem import GemmProblem

ALIGNED_HALVES = 8
"""Elements of float16 in 16 bytes."""


def row_lengths(problem: GemmProblem) -> tuple[int, int]:
    """Return the elements of a row of a and of b in memory."""
    depth = problem.depth
    return (problem.m if problem.trans_a else depth, depth if problem.trans_b else problem.n)


def reads_in_place(problem: GemmProblem, device: Device) -> bool:
    """Return whether warpgroups can read both matrices in place.

    They read half precision along or across rows, 16 bytes at a time.
    """
    return (
        problem.dtype.itemsize == 2
        and device.capabilities.warpgroup_matrix_units
        and device.aligns_vectors
        and all(length % ALIGNED_HALVES == 0 for length in row_lengths(problem))
    )
