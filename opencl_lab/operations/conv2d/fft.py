"""The algorithm of a convolution by fast Fourier transforms, for large filters: fft."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.fourier.builder import Ends, Steps
from opencl_lab.fourier.factors import next_smooth
from opencl_lab.fourier.local_memory import groups_transform
from opencl_lab.fourier.vector import lanes_transform
from opencl_lab.kernels import largest_power, positive
from opencl_lab.operations.conv2d.launch import (
    Convolution,
    Pass,
    pixel_params,
    value_outside,
)
from opencl_lab.operations.conv2d.problem import Conv2dProblem
from opencl_lab.operations.dft.fft import Fft as Transform
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.plan import Argument, Launch, Plan, Work
from opencl_lab.space import Config, Parameter, SearchSpace

__all__ = ["Blocks", "Fft"]

TEMPLATE = "conv2d/fft.cl.mako"
MULTIPLE = 16
"""Sides of blocks are multiples, whose transforms have whole vectors and few radices."""
COMPLEX: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.complex64),
    "float64": np.dtype(np.complex128),
}
TRANSFORM = Transform()
ALL_SIDES = (64, 96, 128, 192, 256, 384, 512, 1024)
SIDES = (128, 256, 512)
"""Of blocks whose transforms fit a cache and hardly overlap for common filters."""
AROUND = 24.0
"""Operations on a point that take as long as moving it from and to the images."""
ERROR = 16.0
"""Roundings by which a result is off at most, of the largest pixel of its blocks times the largest
magnitude in the spectrum of the filter. Noise of +-1 and a filter of one weight came to 12."""
ROWS = 4
"""Rows of results that an item sums anew together: their sums stay in registers."""
MOST_TURNS = 1024
"""Launches over some pairs after the other; each takes time to prepare at the first call."""


@dataclass(frozen=True)
class Cost:
    """What a kind of device takes, in operations of a direct convolution of the same duration.

    Parameters
    ----------
    operation : float
        For an operation of a transform, which waits for memory more than it computes.
    launch : float
        For a launch.
    memory : int
        Bytes of the blocks that should be on the way at a time: for CPUs, what a cache holds.
    """

    operation: float
    launch: float
    memory: int


CPU = Cost(4.5, 5e6, 4 << 20)
"""Measured on two cores with vectors of 32 bytes: 180 GFLOP/s against 60, 30 us a launch. Half as
much again, for looking at results, and as some may have to be summed anew."""
GPU = Cost(5.0, 2e8, 256 << 20)
"""Estimated for an H200: 37 TFLOP/s against what a dozen passes over memory take."""


def _cost(device: Device) -> Cost:
    if device.kind != "cpu":
        return GPU
    # Wider vectors make direct sums as much faster, and hardly the transforms.
    return replace(CPU, operation=CPU.operation * max(32, device.native_vector_bytes) / 32)


@dataclass(frozen=True)
class Blocks:
    """How the results are cut into blocks along both axes.

    Parameters
    ----------
    count, step, length : tuple of int
        Along y and x: blocks, results of a block, and its values with the overlap.
    """

    count: tuple[int, int]
    step: tuple[int, int]
    length: tuple[int, int]

    @classmethod
    def of(cls, problem: Conv2dProblem, block: int) -> Blocks:
        """Return blocks of about `block` values along each axis, all of the same size.

        They are longer where the filter is, and shorter where the image ends before.
        """
        axes = []
        for out, taps in zip(problem.result_shape[1:3], problem.filter_shape, strict=True):
            most = max(block, next_smooth(2 * taps, MULTIPLE))
            count = max(1, -(-out // (most - taps + 1)))
            step = -(-out // count)
            axes.append((count, step, next_smooth(step + taps - 1, MULTIPLE)))
        counts, steps, lengths = zip(*axes, strict=True)
        return cls(counts, steps, lengths)

    def pairs(self, problem: Conv2dProblem) -> int:
        """Return how many pairs of blocks there are in all."""
        return -(-self.total(problem) // 2)

    def total(self, problem: Conv2dProblem) -> int:
        """Return how many blocks there are in all."""
        return math.prod(self.count) * problem.batch * problem.channels

    @property
    def points(self) -> int:
        """Complex numbers of a pair."""
        return math.prod(self.length)

    def flops(self, problem: Conv2dProblem) -> float:
        """Return the arithmetic of all pairs: forth and back, and a product between."""
        each = self.points * (2 * 5 * math.log2(self.points) + 6)
        return each * (self.pairs(problem) + 0.5)  # the filter is transformed once


class Fft(Convolution):
    """Overlapping blocks, two in one complex transform, times the transform of the filter."""

    name = "fft"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE, *Transform.templates)
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
        blocks = Blocks.of(problem, min(SIDES))
        if blocks.total(problem) >= 2**31:
            return f"{blocks.total(problem)} blocks are more than 2^31"
        if 2 * blocks.points * problem.sum_type.itemsize > device.max_allocation // 2:
            return "the device has no room for blocks that hold the filter twice"
        return super().supports(problem, device)

    def impractical(self, problem: Conv2dProblem) -> str | None:
        """Return None: it does not form the products one by one."""
        return None

    def work(self, problem: Conv2dProblem) -> Work:
        """Return the arithmetic of the transforms, for the blocks that need the least."""
        if 0 in problem.result_shape:
            return problem.work
        flops = min(Blocks.of(problem, side).flops(problem) for side in ALL_SIDES)
        return Work(min(flops, problem.work.flops), problem.work.bytes)

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return the blocks of least cost, and as many at a time as a cache holds."""
        limit = min(device.capabilities.max_work_group, device.max_work_items[0])
        memory = min(_cost(device).memory, device.max_allocation)
        configs = []
        for side in SIDES:
            blocks = Blocks.of(problem, side)
            each = 4 * blocks.points * problem.sum_type.itemsize  # in two copies
            at_once = max(1, memory // each, -(-blocks.pairs(problem) // MOST_TURNS))
            group = 1 if device.kind == "cpu" else largest_power(64, limit)
            configs.append(Config(BLOCK=side, PAIRS=at_once, WG_SIZE=group))
        return min(configs, key=lambda config: self.operations(problem, config, device))

    @staticmethod
    def operations(problem: Conv2dProblem, config: Config, device: Device) -> float:
        """Return how many operations of a direct convolution take as long, about."""
        blocks = Blocks.of(problem, config.integer("BLOCK"))
        launches = 5 + 7 * math.ceil(blocks.pairs(problem) / config.integer("PAIRS"))
        cost = _cost(device)
        points = AROUND * blocks.points * blocks.pairs(problem)
        return cost.operation * (blocks.flops(problem) + points) + cost.launch * launches

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan the transform of the filter, then that of some pairs of blocks after the other."""
        buffers = self._buffers(problem)
        if 0 in problem.result_shape:
            return Plan(tuple(buffers), ())
        steps = Steps(COMPLEX[problem.sum_type.name], problem.sum_type, buffers)
        blocks = Blocks.of(problem, config.integer("BLOCK"))
        around = _Around(problem, blocks, config.integer("WG_SIZE"), device)
        pairs = blocks.pairs(problem)
        at_once = min(pairs, config.integer("PAIRS"))
        if pairs > MOST_TURNS * at_once:
            raise InvalidConfig(f"PAIRS={at_once} is too few for {pairs} pairs of blocks")
        near, far = (steps.scratch("pairs", at_once * blocks.points) for _ in range(2))
        filter_near, filter_far = (steps.scratch("filter", blocks.points) for _ in range(2))
        bits = np.dtype(f"u{problem.sum_type.itemsize}")
        marks = steps.scratch("marks", around.marks, np.dtype(np.uint8))
        loudest = steps.scratch("loudest", at_once * blocks.length[0], bits)
        strongest = steps.scratch("strongest", blocks.length[0], bits)

        steps.launches.append(around.weights_in(filter_near))
        _forth(steps, blocks, 1, filter_near, filter_far, device)
        steps.launches.append(around.strengths_of(filter_near, strongest))
        launches, between = [*steps.launches], dict[int, list[Launch]]()
        for first in range(0, pairs, at_once):
            count = min(at_once, pairs - first)
            if count not in between:  # these differ in nothing else
                steps.launches.clear()
                _forth(steps, blocks, count, near, far, device)
                steps.launches.append(around.multiply(near, filter_near, count))
                _back(steps, blocks, count, near, far, device)
                between[count] = [*steps.launches]
            launches.append(around.blocks_in(near, loudest, first, count))
            launches += between[count]
            launches.append(around.blocks_out(near, marks, loudest, strongest, first, count))
        launches.append(around.sum_marked(marks))
        return Plan(tuple(steps.buffers), tuple(launches))


def _forth(steps: Steps, blocks: Blocks, pairs: int, near: str, far: str, device: Device) -> None:
    """Add transforms along the rows and then the columns of `near`, by way of `far`."""
    rows, columns = blocks.length
    _transform(steps, Ends.rows(columns, pairs * rows, near, far), device)
    _transform(steps, Ends.columns(rows, pairs, columns, far, near), device)


def _back(steps: Steps, blocks: Blocks, pairs: int, near: str, far: str, device: Device) -> None:
    """Add transforms along the columns and then the rows: back, as parts are exchanged."""
    rows, columns = blocks.length
    _transform(steps, Ends.columns(rows, pairs, columns, near, far), device)
    _transform(steps, Ends.rows(columns, pairs * rows, far, near), device)


def _transform(steps: Steps, ends: Ends, device: Device) -> None:
    """Add transforms as `dft` has them built in on this device; those tuned there stand alone."""
    in_rows = ends.source_strides[1] == 1
    batch, inner = (ends.count, 1) if in_rows else (ends.outer, ends.lanes)
    problem = DftProblem(ends.n, steps.dtype, batch, inner)
    config = TRANSFORM.default_config(problem, device)
    form = lanes_transform if config["FORM"] == "lanes" else groups_transform
    form(steps, ends, False, 1.0, config, device)


@dataclass(frozen=True)
class _Around:
    """The launches before, between and after the transforms: a work-group for each row."""

    problem: Conv2dProblem
    blocks: Blocks
    wg_size: int
    device: Device

    def _launch(
        self, kernel: str, groups: int, arguments: dict[str, Argument | int], maxima: int = 0
    ) -> Launch:
        """Return a launch, whose groups share `maxima`; plain numbers become 32-bit integers."""
        pixels = pixel_params(self.problem, Pass.whole(self.problem), False, self.device)
        own = {
            "CHANNELS": self.problem.channels,
            "WG_SIZE": self.wg_size,
            "LANES": self._lanes,
            "ROWS": ROWS,
        }
        return Launch(
            template=TEMPLATE,
            kernel=kernel,
            params={**pixels, **own},
            global_size=(groups * self.wg_size,),
            local_size=(self.wg_size,),
            arguments={
                name: np.int32(value) if isinstance(value, int) else value
                for name, value in arguments.items()
            },
            local_bytes=maxima * self.wg_size * self.problem.sum_type.itemsize,
        )

    @property
    def _lanes(self) -> int:
        """Results beside each other that are judged together."""
        return 1 if self.wg_size > 1 else 64 // self.problem.sum_type.itemsize

    @property
    def marks(self) -> int:
        """How many marks there are: one for some results of each row of each block."""
        step_y, step_x = self.blocks.step
        return self.blocks.total(self.problem) * step_y * -(-step_x // self._lanes)

    @property
    def _sizes(self) -> dict[str, int]:
        rows, columns = self.blocks.length
        return {"rows": rows, "columns": columns}

    @property
    def _cut(self) -> dict[str, int]:
        (blocks_y, blocks_x), (step_y, step_x) = self.blocks.count, self.blocks.step
        return {"blocks_y": blocks_y, "blocks_x": blocks_x, "step_y": step_y, "step_x": step_x}

    def _part(self, first: int | None) -> dict[str, Argument | int]:
        offset_y, offset_x = self.problem.offset
        return {
            "offset_y": offset_y,
            "offset_x": offset_x,
            "blocks": np.uint32(self.blocks.total(self.problem)),
            **({} if first is None else {"first_pair": np.uint32(first)}),
            "cval": value_outside(self.problem),
        }

    @property
    def _shape(self) -> dict[str, int]:
        problem = self.problem
        return {
            "height": problem.height,
            "width": problem.width,
            "filter_height": problem.filter_height,
            "filter_width": problem.filter_width,
        }

    def weights_in(self, block: str) -> Launch:
        rows, taps = self.blocks.length[0], self.problem.filter_shape
        arguments: dict[str, Argument | int] = {
            "weights": "weights",
            "block": block,
            "filter_height": taps[0],
            "filter_width": taps[1],
            **self._sizes,
            "scale": self.problem.sum_type.type(1 / self.blocks.points),
        }
        return self._launch("weights_in", rows, arguments)

    def strengths_of(self, spectrum: str, strongest: str) -> Launch:
        arguments: dict[str, Argument | int] = {
            "spectrum": spectrum,
            "strongest": strongest,
            "columns": self.blocks.length[1],
            "size": self.problem.sum_type.type(self.blocks.points),
        }
        return self._launch("strengths_of", self.blocks.length[0], arguments, maxima=1)

    def multiply(self, pairs: str, spectrum: str, count: int) -> Launch:
        arguments: dict[str, Argument | int] = {
            "pairs": pairs,
            "spectrum": spectrum,
            **self._sizes,
        }
        return self._launch("multiply", count * self.blocks.length[0], arguments)

    def blocks_in(self, pairs: str, loudest: str, first: int, count: int) -> Launch:
        problem = self.problem
        arguments: dict[str, Argument | int] = {
            "image": "image",
            "pairs": pairs,
            "loudest": loudest,
            "height": problem.height,
            "width": problem.width,
            **self._sizes,
            **self._cut,
            "last_row": problem.out_height + problem.filter_height - 2,
            "last_column": problem.out_width + problem.filter_width - 2,
            **self._part(first),
        }
        return self._launch("blocks_in", count * self.blocks.length[0], arguments, maxima=1)

    def blocks_out(
        self, pairs: str, marks: str, loudest: str, strongest: str, first: int, count: int
    ) -> Launch:
        problem, number = self.problem, self.problem.sum_type.type
        taps = problem.filter_height * problem.filter_width
        share = 2 * ERROR / taps  # as a direct sum is off by taps * eps / 2 of its magnitudes
        # A quarter more or less matters little to what becomes a whole number.
        hidden = 0.5 / (taps * np.finfo(number).eps) if problem.dtype.kind in "iu" else 0.0
        arguments: dict[str, Argument | int] = {
            "pairs": pairs,
            "image": "image",
            "weights": "weights",
            "result": "result",
            "marks": marks,
            "loudest": loudest,
            "strongest": strongest,
            **self._shape,
            **self._sizes,
            **self._cut,
            "out_height": problem.out_height,
            "out_width": problem.out_width,
            **self._part(first),
            "share": number(share),
            "hidden": number(hidden),
        }
        return self._launch("blocks_out", count * self.blocks.step[0], arguments, maxima=2)

    def sum_marked(self, marks: str) -> Launch:
        arguments: dict[str, Argument | int] = {
            "image": "image",
            "weights": "weights",
            "result": "result",
            "marks": marks,
            **self._shape,
            **self._cut,
            "out_height": self.problem.out_height,
            "out_width": self.problem.out_width,
            **self._part(None),
        }
        tiles = self.blocks.total(self.problem) * -(-self.blocks.step[0] // ROWS)
        return self._launch("sum_marked", tiles, arguments)
