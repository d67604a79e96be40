"""What a convolution by Fourier transforms takes, beside direct sums on the same device."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.conv2d.blocks import Blocks
from opencl_lab.ops.conv2d.problem import Conv2dProblem

__all__ = ["cost_of", "direct_operations"]

AROUND = 24.0
"""Operations on a point that take as long as moving it from and to the images."""


@dataclass(frozen=True)
class Cost:
    """What a kind of device takes, in operations of a direct convolution of the same duration."""

    # For an operation of a transform, which waits for memory more than it computes.
    operation: float
    launch: float  # for a launch
    # Bytes of the blocks that should be on the way at a time: for CPUs, what a cache holds.
    memory: int


CPU = Cost(4.5, 5e6, 4 << 20)
"""Measured on two cores with vectors of 32 bytes: 180 GFLOP/s against 60, 30 us per launch. Half
as much again, for looking at results, and as some may have to be summed anew."""
GPU = Cost(5.0, 2e8, 256 << 20)
"""Estimated for an H200: 37 TFLOP/s against what a dozen passes over memory take."""


def cost_of(device: Device) -> Cost:
    """Return what a device takes."""
    if device.kind != "cpu":
        return GPU
    # Wider vectors make direct sums as much faster, and hardly the transforms.
    return replace(CPU, operation=CPU.operation * max(32, device.native_vector_bytes) / 32)


def direct_operations(
    problem: Conv2dProblem, blocks: Blocks, at_once: int, device: Device
) -> float:
    """Return how many operations of a direct convolution take as long, about.

    There are `at_once` pairs of blocks in a launch.
    """
    pairs, cost = blocks.pairs(problem), cost_of(device)
    launches = 5 + 7 * ceil_divide(pairs, at_once)
    points = AROUND * blocks.points * pairs
    return cost.operation * (blocks.flops(problem) + points) + cost.launch * launches
