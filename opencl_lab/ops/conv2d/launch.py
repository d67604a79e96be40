"""What the algorithms of a convolution share: one launch of one kernel over images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_type
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, round_up
from opencl_lab.core.space import Config
from opencl_lab.ops.conv2d.pixels import FilterPass, Pixels, value_outside
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.solver import Algorithm

MANY_PRODUCTS = 1 << 37
"""Products of a direct sum above which a CPU takes many seconds, or minutes."""
GRID_LIMIT = 65_535
"""Most images in a launch: some GPUs allow no more work-groups in the third dimension."""


class Convolution(Algorithm[Conv2dProblem]):
    """What the algorithms share."""

    kernel: ClassVar[str]
    has_long_sums: ClassVar[bool] = False
    """Whether it can make sums of 128 bits."""

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need double precision for float64."""
        if problem.long_sums and not self.has_long_sums:
            return "its sums have 64 bits, and these weights need more: naive has them"
        return lacks_type(device, problem.sum_type)

    def too_slow(self, problem: Conv2dProblem) -> str | None:
        """Return why it is too slow: it forms every product of a large filter."""
        many = problem.products > MANY_PRODUCTS
        return f"its {problem.products:.1e} products take long" if many else None

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan what `_solve` launches, and nothing for an empty result."""
        buffers = [
            Buffer("image", "in", problem.image_shape, problem.dtype),
            Buffer("weights", "in", problem.filter_shape, problem.sum_type),
            Buffer("result", "out", problem.result_shape, problem.dtype),
        ]
        empty = 0 in problem.result_shape
        launches = [] if empty else self._solve(problem, config, device, buffers)
        return Plan(tuple(buffers), tuple(launches))

    @abstractmethod
    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return the launches; add what they need beyond image, weights and result to `buffers`."""

    def _launches(
        self,
        problem: Conv2dProblem,
        one: FilterPass,
        params: Mapping[str, Any],
        *,
        tile: tuple[int, int],
        group: tuple[int, int],
        arguments: Mapping[str, Argument],
        constant_weights: bool,
        device: Device,
        local_bytes: int = 0,
        sized: bool = True,
    ) -> list[Launch]:
        """Return the launches of one pass.

        `params` and `arguments` are those of this kernel alone: PIXELS and the arguments common to
        all kernels are added; with `sized` the size of the filter is among these. A work-group
        computes a `tile` (rows, values of a row); `group` are its items, in the same order.
        """
        values = one.out_size[1] * problem.channels
        pixels = Pixels.of(problem, one, constant_weights, device)
        outside = value_outside(problem)
        taps: dict[str, Argument] = {}
        if sized:
            taps = {"filter_height": np.int32(one.taps[0]), "filter_width": np.int32(one.taps[1])}
        return [
            Launch(
                template=self.templates[0],
                kernel=self.kernel,
                params={**params, "PIXELS": pixels},
                global_size=(
                    round_up(values, tile[1]) // tile[1] * group[1],
                    round_up(one.out_size[0], tile[0]) // tile[0] * group[0],
                    min(GRID_LIMIT, problem.batch - first),
                ),
                local_size=(group[1], group[0], 1),
                arguments={
                    "image": one.source,
                    "weights": one.weights,
                    "result": one.target,
                    "height": np.int32(one.size[0]),
                    "width": np.int32(one.size[1]),
                    **arguments,
                    "out_height": np.int32(one.out_size[0]),
                    "out_width": np.int32(one.out_size[1]),
                    "offset_y": np.int32(one.offset[0]),
                    "offset_x": np.int32(one.offset[1]),
                    **taps,
                    "first_image": np.uint64(first),
                    "cval": outside,
                },
                local_bytes=local_bytes,
            )
            for first in range(0, problem.batch, GRID_LIMIT)
        ]


def line_buffers(problem: Conv2dProblem) -> list[Buffer]:
    """Return the buffers of a filter of rank 1, besides that of its weights."""
    return [
        Buffer("row", "in", (problem.filter_width,), problem.sum_type),
        Buffer("column", "in", (problem.filter_height,), problem.sum_type),
    ]
