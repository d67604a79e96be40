"""Split-K: groups have a slice of k each, and their partial sums are added up.

The last group of a tile does this in the same launch, where groups see what others have written;
or a second launch does, the split-K reduction.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, largest_power
from opencl_lab.core.plan import Buffer, Launch, ceil_divide, round_up
from opencl_lab.ops.gemm import launches
from opencl_lab.ops.gemm.problem import GemmProblem

REDUCTION = "gemm/split_k_reduction.cl.mako"
PARTIAL = "partial"
"""Name of the buffer of partial sums."""
SplitK: TypeAlias = Literal["none", "last group", "second launch"]
"""What templates know: whether k is split, and who adds up the partial sums."""
REDUCING = 512
"""Items of a compute unit of a GPU that add up partial sums, so that enough loads are under way."""
GROUP = 128
EACH = 8
"""Vectors that an item of a CPU adds up, one after the other."""


def way(splits: int, last_group: bool) -> SplitK:
    """Return who adds up the sums of so many slices of k."""
    return "none" if splits == 1 else "last group" if last_group else "second launch"


def reduction(problem: GemmProblem, device: Device, splits: int) -> tuple[Buffer, Launch]:
    """Return the buffer of partial sums, products x slices x m x n, and what adds them up."""
    width = _width(problem, device)
    vectors = math.prod(problem.shape) // width
    group, sharers, each = 1, 1, EACH
    if device.kind != "cpu":
        group, each = largest_power(GROUP, group_limit(device)), 1
        wanted = ceil_divide(REDUCING * device.compute_units, vectors)
        sharers = largest_power(group, 16, wanted, splits // 4)
    names = ("ELEMENT", "INDEX_T", "EPILOGUE", "STACKS")
    common = launches.params(problem)
    launch = Launch(
        template=REDUCTION,
        kernel="gemm_split_k_reduction",
        params={
            **{name: common[name] for name in names},
            "WIDTH": width,
            "SHARERS": sharers,
            "WG_SIZE": group,
            "EACH": each,
            "ALIGNED": device.aligns_vectors,
            "MOST": launches.builtin_width(problem, device),
        },
        global_size=(round_up(ceil_divide(vectors, each) * sharers, group),),
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


def by_last_group(
    problem: GemmProblem, tiles: int, splits: int, *sums: int
) -> tuple[Buffer, Buffer]:
    """Return the buffers of what the last group of a tile adds up, without a second launch.

    They are the partial sums, tiles x slices x `sums`, and how many groups of each tile have come.
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
