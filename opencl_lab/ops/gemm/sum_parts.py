"""Products whose k is split: the buffers of the slices' sums, and a launch that adds them up."""

from __future__ import annotations

import math

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, largest_power
from opencl_lab.core.plan import Buffer, Launch, ceil_divide, round_up
from opencl_lab.ops.gemm import launches
from opencl_lab.ops.gemm.problem import GemmProblem

SUM_PARTS = "gemm/sum_parts.cl.mako"
PARTIAL = "partial"
"""Name of the buffer of the slices' sums."""
SUMMING = 512
"""Items per compute unit of a GPU that add up slices, so that enough loads are in flight."""
GROUP = 128
EACH = 8
"""Vectors that an item of a CPU adds up, one after the other."""


def sum_parts(problem: GemmProblem, device: Device, splits: int) -> tuple[Buffer, Launch]:
    """Return the buffer of the slices' sums, products x slices x m x n, and its launch."""
    width = _width(problem, device)
    pieces = math.prod(problem.shape) // width
    group, sharers, each = 1, 1, EACH
    if device.kind != "cpu":
        group, each = largest_power(GROUP, group_limit(device)), 1
        wanted = ceil_divide(SUMMING * device.compute_units, pieces)
        sharers = largest_power(group, 16, wanted, splits // 4)
    names = ("TYPE", "INDEX_T", "HAS_C", "BIAS", "ACTIVATION", "STACKS")
    common = launches.params(problem)
    launch = Launch(
        template=SUM_PARTS,
        kernel="gemm_sum_parts",
        params={
            **{name: common[name] for name in names},
            "WIDTH": width,
            "SHARERS": sharers,
            "WG_SIZE": group,
            "EACH": each,
            "ALIGNED": device.aligns_vectors,
            "MOST": launches.builtin_width(problem, device),
        },
        global_size=(round_up(ceil_divide(pieces, each) * sharers, group),),
        local_size=(group,),
        arguments={
            **launches.arguments(problem),
            "partial": PARTIAL,
            "splits": np.uint32(splits),
            "products": launches.index_of(problem)(problem.batch),
        },
        local_bytes=group * width * problem.sum_type.itemsize if sharers > 1 else 0,
    )
    shape = (problem.batch, splits, problem.m, problem.n)
    return Buffer(PARTIAL, "scratch", shape, problem.sum_type), launch


def joined_parts(
    problem: GemmProblem, tiles: int, splits: int, *sums: int
) -> tuple[Buffer, Buffer]:
    """Return the buffers for slices that the last group of a tile adds up, without a second launch.

    They are the slices' sums, tiles x slices x `sums`, and how many groups of each tile are done.
    """
    return (
        Buffer(PARTIAL, "scratch", (tiles, splits, *sums), problem.sum_type),
        Buffer("arrived", "zeros", (tiles,), np.dtype(np.uint32)),
    )


def _width(problem: GemmProblem, device: Device) -> int:
    """Return how many sums to add at once: they divide a product, or with a bias its rows."""
    if problem.is_complex:
        return 1
    length = problem.n if problem.bias else problem.m * problem.n
    wanted = launches.vector_width(problem, device)
    return math.gcd(largest_power(wanted, launches.builtin_width(problem, device)), length)
