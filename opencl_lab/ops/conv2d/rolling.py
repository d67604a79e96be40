"""The algorithm of a convolution for one thread: rolling."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import VECTOR_WIDTHS, largest_power, positive, vector_width
from opencl_lab.core.plan import Argument, Buffer, LocalMemory, Plan, ceil_divide, round_up
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.conv2d.launch import Convolution
from opencl_lab.ops.conv2d.pixels import Pass
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.strip import Strip

TILE_BYTES = 48 << 10
"""A tile with its halo: about what the first cache of a processor holds."""
MOST_COLUMNS = 1024
"""Values of a row of a tile."""
MOST_ROWS = 15
"""Rows of a filter: each has sums of its own in registers."""
MOST_PRODUCTS = 225
"""Weights that are written out, for each vector."""
SUMS = {64: 24}
OTHER_SUMS = 12
"""Vectors of sums that stay in registers, by the bytes of the processor's vectors."""
FROM_TAPS = 25
"""Weights from which on a row and a column beat the whole filter."""


class Rolling(Convolution):
    """Tiles in the cache of a thread, and sums that roll down their columns."""

    name = "rolling"
    templates: ClassVar[tuple[str, ...]] = ("conv2d/rolling.cl.mako",)
    kernel = "conv2d_rolling"
    space = SearchSpace(
        (
            Parameter("VECTOR_WIDTH", VECTOR_WIDTHS, "values of a row in a vector"),
            Parameter("VECTORS", (1, 2, 3, 4), "vectors side by side"),
            Parameter("TILE_BYTES", (16 << 10, 32 << 10, 48 << 10, 64<<10, 128<<10), "a tile and its halo"),
        ),
        (vector_width("VECTOR_WIDTH"), positive("VECTORS"), positive("TILE_BYTES")),
    )

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need a CPU, and a filter whose sums stay in registers."""
        if device.kind != "cpu":
            return "its tiles need a processor with caches of its own"
        rows, columns = problem.filter_shape
        if rows > MOST_ROWS or rows * columns > MOST_PRODUCTS:
            return f"more than {MOST_ROWS} rows or {MOST_PRODUCTS} weights do not stay in registers"
        return super().supports(problem, device)

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return the widest vectors, and as many as have room in registers and in a row."""
        native = min(64, max(16, device.native_vector_bytes))
        values = max(1, problem.out_width * problem.channels)
        width = largest_power(min(native // problem.sum_type.itemsize, values))
        most = max(1, SUMS.get(native, OTHER_SUMS) // problem.filter_height)
        vectors = max(1, min(4, most, values // width))
        return Config(VECTOR_WIDTH=width, VECTORS=vectors, TILE_BYTES=TILE_BYTES)

    def plan(self, problem: Conv2dProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, with a work-group per tile of the result."""
        buffers = self._buffers(problem)
        one, weights = Pass.whole(problem), {}
        separable = problem.separable and problem.filter_height * problem.filter_width >= FROM_TAPS
        if separable:
            buffers += [
                Buffer("row", "in", (problem.filter_width,), problem.sum_type),
                Buffer("column", "in", (problem.filter_height,), problem.sum_type),
            ]
            one, weights = replace(one, weights="column"), {"row_weights": "row"}
        if 0 in problem.result_shape:
            return Plan(tuple(buffers), ())
        strip = _strip(problem, config)
        word = problem.sum_type.itemsize
        values = problem.out_width * problem.channels
        width = ceil_divide(values, ceil_divide(values, MOST_COLUMNS))
        line = round_up(width + (problem.filter_width - 1) * problem.channels, strip.vector_width)
        extra = problem.filter_height - 1 + separable
        fitting = config.integer("TILE_BYTES") // (line * word) - extra
        height = max(1, min(problem.out_height, fitting))
        height = ceil_divide(problem.out_height, ceil_divide(problem.out_height, height))
        arguments: dict[str, Argument] = {
            **weights,
            "tile": LocalMemory((height + extra) * line * word),
            "line": np.int32(line),
            "tile_height": np.int32(height),
            "tile_width": np.int32(width),
        }
        launches = self._launches(
            problem,
            one,
            {"STRIP": strip, "SEPARABLE": separable},
            tile=(height, width),
            group=(1, 1),
            arguments=arguments,
            constant_weights=False,
            device=device,
        )
        return Plan(tuple(buffers), tuple(launches))

    def _taps(self, one: Pass) -> dict[str, Argument]:
        """Return no arguments: the kernel is built for one size of the filter."""
        return {}


def _strip(problem: Conv2dProblem, config: Config) -> Strip:
    """Return the strip of a row that is computed at once."""
    width = config.integer("VECTOR_WIDTH")
    return Strip(
        taps=problem.filter_shape,
        channels=problem.channels,
        wg_x=1,
        wg_y=1,
        vector_width=width,
        vectors=config.integer("VECTORS"),
        rows=1,
        several=True,
        unroll=problem.filter_width,
        window=False,
        align=1,
        shift=0,
        piece=min(width, 4 if problem.sum_type.itemsize == 8 else 8),
    )
