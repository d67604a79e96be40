"""The algorithm of a convolution by fast Fourier transforms, for large filters: fft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, largest_power, positive
from opencl_lab.core.plan import Buffer, Launch, Work, ceil_divide
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.conv2d.blocks import OverlapBlocks
from opencl_lab.ops.conv2d.fft_launches import MOST_ROUNDS, TEMPLATE, Filtering
from opencl_lab.ops.conv2d.launch import Convolution
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.fft.passes.forms import TEMPLATES

ALL_SIDES = (64, 96, 128, 192, 256, 384, 512, 1024)
SIDES = (128, 256, 512)
"""Sides of blocks whose transforms fit a cache, and which overlap little for common filters."""
AROUND = 24.0
"""Time to copy a point from and to the images, in operations of a transform."""


@dataclass(frozen=True)
class Cost:
    """Costs on a device, in operations of a direct convolution that take as long."""

    # Of an operation of a transform, which is bound by memory.
    operation: float
    launch: float  # of a launch
    # Bytes of the blocks to transform at a time: for CPUs, what the caches hold.
    memory: int
    # Of a product whose magnitude is added in the recheck, and of one of a doubtful result, in
    # products of a direct convolution.
    check: float
    again: float

    @classmethod
    def of(cls, device: Device) -> Cost:
        """Return the costs on a device."""
        if device.kind != "cpu":
            return GPU
        units, wide = device.compute_units, max(32, device.native_vector_bytes) / 32
        # Wider vectors speed up direct sums in proportion, and transforms hardly at all.
        operations = UNIT_FLOPS * units * wide
        launch = 1e-6 * (LAUNCH_US + units * WAKE_US) * operations
        return cls(3.2 * wide, launch, units * (2 << 20), 5.0, 2.0)


UNIT_FLOPS = 9e10
"""Operations of a direct convolution in a second on a core, with vectors of 32 bytes."""
LAUNCH_US, WAKE_US = 15.0, 4.0
"""A launch on a CPU, and each thread that it wakes."""
GPU = Cost(5.0, 5e7, 256 << 20, 5.0, 5.0)
"""Measured on an H100."""


class FftConvolution(Convolution):
    """Transforms of overlapping blocks, two per complex transform, times that of the filter."""

    name = "fft"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE, *TEMPLATES)
    space = SearchSpace(
        (
            Parameter("BLOCK", ALL_SIDES, "values along a side"),
            Parameter("PAIRS", (1, 2, 4, 8, 16, 32, 64, 256), "pairs of blocks in a launch"),
            Parameter("WG_SIZE", (1, 32, 64, 128, 256), "items that share a row of a block"),
        ),
        (positive("BLOCK"), positive("PAIRS"), positive("WG_SIZE")),
    )

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need sums in floating point, and room for a pair of blocks."""
        if problem.sum_type.kind == "i":
            return "integer weights are summed exactly, and transforms are not exact"
        blocks = OverlapBlocks.of(problem, min(SIDES))
        if blocks.total(problem) >= 2**31:
            return f"{blocks.total(problem)} blocks are more than 2^31"
        if 2 * blocks.points * problem.sum_type.itemsize > device.largest_buffer // 2:
            return "the device has no room for blocks that hold the filter twice"
        return super().supports(problem, device)

    def too_slow(self, problem: Conv2dProblem) -> str | None:
        """Return None: its work hardly grows with the filter."""
        return None

    def work(self, problem: Conv2dProblem) -> Work:
        """Return the arithmetic of the transforms, for the blocks that need the least."""
        if 0 in problem.result_shape:
            return problem.work
        flops = min(OverlapBlocks.of(problem, side).flops(problem) for side in ALL_SIDES)
        return Work(min(flops, problem.work.flops), problem.work.bytes)

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return the blocks of least cost, and as many at a time as a cache holds."""
        memory = min(Cost.of(device).memory, device.largest_buffer)
        configs = []
        for side in SIDES:
            blocks = OverlapBlocks.of(problem, side)
            each = 4 * blocks.points * problem.sum_type.itemsize  # two arrays
            at_once = max(1, memory // each, ceil_divide(blocks.pairs(problem), MOST_ROUNDS))
            group = 1 if device.kind == "cpu" else largest_power(64, group_limit(device))
            configs.append(Config(BLOCK=side, PAIRS=at_once, WG_SIZE=group))
        return min(configs, key=lambda config: self.operations(problem, config, device))

    @staticmethod
    def operations(problem: Conv2dProblem, config: Config, device: Device) -> float:
        """Return the estimated time, in operations of a direct convolution."""
        pairs = OverlapBlocks.of(problem, config.integer("BLOCK")).pairs(problem)
        launches = 5 + 7 * ceil_divide(pairs, config.integer("PAIRS"))
        return arithmetic(problem, config, device) + Cost.of(device).launch * launches

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return the transform of the filter, then those of the blocks, some pairs at a time."""
        filtering = Filtering(problem, config, device, buffers)
        filtering.add_filter()
        filtering.add_peaks()
        filtering.add_blocks()
        return filtering.builder.launches


def arithmetic(problem: Conv2dProblem, config: Config, device: Device) -> float:
    """Return the estimated time without that of launches, in operations of a direct convolution."""
    blocks = OverlapBlocks.of(problem, config.integer("BLOCK"))
    points = AROUND * blocks.points * blocks.pairs(problem)
    return Cost.of(device).operation * (blocks.flops(problem) + points)
