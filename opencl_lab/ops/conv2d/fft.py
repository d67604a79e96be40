"""The algorithm of a convolution by fast Fourier transforms, for large filters: fft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import group_limit, largest_power, positive
from opencl_lab.core.plan import Buffer, Launch, Plan, Work, ceil_divide
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.conv2d.blocks import OverlapBlocks, Recheck
from opencl_lab.ops.conv2d.fft_launches import TEMPLATE, BlockKernels
from opencl_lab.ops.conv2d.launch import Convolution
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import TEMPLATES, default_config, planner_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout

COMPLEX: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.complex64),
    "float64": np.dtype(np.complex128),
}
ALL_SIDES = (64, 96, 128, 192, 256, 384, 512, 1024)
SIDES = (128, 256, 512)
"""Sides of blocks whose transforms fit a cache, and which overlap little for common filters."""
MOST_ROUNDS = 1024
"""Most rounds of launches, one for some pairs each; preparing a launch takes time at first."""

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

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan the transform of the filter, then those of the blocks, some pairs at a time."""
        buffers = self._buffers(problem)
        if 0 in problem.result_shape:
            return Plan(tuple(buffers), ())
        filtering = Filtering.of(problem, config, device, buffers)
        filtering.add_filter()
        filtering.add_peaks()
        filtering.add_blocks()
        return filtering.builder.finish()


def arithmetic(problem: Conv2dProblem, config: Config, device: Device) -> float:
    """Return the estimated time without that of launches, in operations of a direct convolution."""
    blocks = OverlapBlocks.of(problem, config.integer("BLOCK"))
    points = AROUND * blocks.points * blocks.pairs(problem)
    return Cost.of(device).operation * (blocks.flops(problem) + points)


@dataclass(frozen=True)
class Filtering:
    """The launches of a plan, and the memory between them."""

    builder: PlanBuilder
    kernels: BlockKernels
    at_once: int  # pairs of blocks that are transformed together
    # Buffers of blocks and of the filter, each with a second one for its transforms.
    pairs: tuple[str, str]
    spectrum: tuple[str, str]
    # Buffers for the recheck of doubtful pixels.
    marks: str
    pixel_peak: str
    spectrum_peak: str

    @classmethod
    def of(
        cls,
        problem: Conv2dProblem,
        config: Config,
        device: Device,
        buffers: list[Buffer],
        *,
        conditional: bool = False,
    ) -> Filtering:
        """Return one without launches, whose blocks may be `conditional`.

        Raises
        ------
        InvalidConfig
            If it would take too many rounds.
        """
        blocks, wg_size = (
            OverlapBlocks.of(problem, config.integer("BLOCK")),
            config.integer("WG_SIZE"),
        )
        recheck = Recheck.of(problem, blocks, wg_size)
        kernels = BlockKernels(problem, blocks, recheck, wg_size, device, conditional)
        pairs = blocks.pairs(problem)
        at_once = min(pairs, config.integer("PAIRS"))
        if pairs > MOST_ROUNDS * at_once:
            raise InvalidConfig(f"PAIRS={at_once} is too few for {pairs} pairs of blocks")
        builder = PlanBuilder(COMPLEX[problem.sum_type.name], buffers)
        scratch = builder.scratch
        bits = np.dtype(f"u{kernels.problem.sum_type.itemsize}")
        size = at_once * blocks.points
        return cls(
            builder,
            kernels,
            at_once,
            (scratch("pairs", size), scratch("pairs", size)),
            (scratch("filter", blocks.points), scratch("filter", blocks.points)),
            scratch("marks", kernels.recheck.marks, np.dtype(np.uint8)),
            scratch("pixel_peak", at_once * blocks.length[0], bits),
            scratch("spectrum_peak", blocks.length[0], bits),
        )

    def add_blocks(self) -> None:
        """Add the filtering of the blocks, some pairs at a time, and of doubtful results."""
        pairs = self.kernels.blocks.pairs(self.kernels.problem)
        known: dict[int, list[Launch]] = {}
        for first in range(0, pairs, self.at_once):
            self._add_pairs(first, min(self.at_once, pairs - first), known)
        self.launch("sum_doubtful", self.kernels.recheck.tiles, marks=self.marks)

    def launch(self, kernel: str, groups: int, **own: str | int | float) -> None:
        """Add a launch of a kernel over blocks; see `BlockKernels.launch`."""
        self.builder.launches.append(self.kernels.launch(kernel, groups, **own))

    def add_filter(self) -> None:
        """Add the transform of the filter."""
        self.launch("load_filter", self.kernels.blocks.length[0], block=self.spectrum[0])
        self._forward(1, *self.spectrum)

    def add_peaks(self) -> None:
        """Add the search for the largest magnitudes of its spectrum."""
        spectrum, peaks = self.spectrum[0], self.spectrum_peak
        rows = self.kernels.blocks.length[0]
        self.launch("find_peaks", rows, spectrum=spectrum, spectrum_peak=peaks)

    def _add_pairs(self, first: int, count: int, known: dict[int, list[Launch]]) -> None:
        """Add the filtering of `count` pairs; `known` caches launches that all rounds share."""
        blocks, launches = self.kernels.blocks, self.builder.launches
        pairs: dict[str, str | int] = {
            "pairs": self.pairs[0],
            "pixel_peak": self.pixel_peak,
            "first_pair": first,
        }
        recheck = {"marks": self.marks, "spectrum_peak": self.spectrum_peak}
        self.launch("load_blocks", count * blocks.length[0], **pairs)
        if count in known:
            launches += known[count]
        else:
            start = len(launches)
            self._multiply(count)
            known[count] = launches[start:]
        self.launch("store_blocks", count * blocks.valid[0], **pairs, **recheck)

    def _multiply(self, count: int) -> None:
        """Add forward transforms, products with the filter's spectrum, and inverse transforms."""
        near, far = self.pairs
        groups = count * self.kernels.blocks.length[0]
        self._forward(count, near, far)
        self.launch("multiply_spectra", groups, pairs=near, spectrum=self.spectrum[0])
        self._backward(count, near, far)

    def _forward(self, pairs: int, near: str, far: str) -> None:
        """Add transforms along the rows and then the columns of `near`, by way of `far`."""
        rows, columns = self.kernels.blocks.length
        self._transform(BatchedLayout.rows(columns, pairs * rows, near, far))
        self._transform(BatchedLayout.columns(rows, pairs, columns, far, near))

    def _backward(self, pairs: int, near: str, far: str) -> None:
        """Add transforms along the columns, then the rows.

        They are inverse ones, as real and imaginary components are swapped before.
        """
        rows, columns = self.kernels.blocks.length
        self._transform(BatchedLayout.columns(rows, pairs, columns, near, far))
        self._transform(BatchedLayout.rows(columns, pairs * rows, far, near))

    def _transform(self, layout: BatchedLayout) -> None:
        """Add transforms in the device's built-in configuration, whatever is tuned for `dft`."""
        device = self.kernels.device
        config = default_config(layout.n, self.builder.real, device)
        planner_of(config, device).transform(self.builder, layout)
