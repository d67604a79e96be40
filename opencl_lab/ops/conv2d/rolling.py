"""The algorithm of a convolution for one thread: rolling."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import VECTOR_WIDTHS, largest_power, positive, vector_width
from opencl_lab.core.plan import (
    Argument,
    Buffer,
    Launch,
    LocalMemory,
    ceil_divide,
    passed_room,
    round_up,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.conv2d.launch import Convolution, line_buffers
from opencl_lab.ops.conv2d.pixels import FilterPass
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.strip import Strip, piece_of

TILE_BYTES = 256 << 10
"""Most bytes of a tile with its halo, which then stays in the second cache."""
MOST_COLUMNS = 1024
"""Values of a row of a tile."""
MOST_HALO = 1024
"""Most values of a row's halo, as its places are in private memory."""
MOST_ROWS = 15
"""Most rows of a filter: each has sums of its own in registers."""
MOST_TAPS = 169
"""Most weights of a filter, or of its row and column: all are written out."""
FEW_ROWS = 3
"""Rows of a filter up to which four vectors of sums stay in registers; else two."""
SEPARATED = 25
"""Weights of a separable filter from which on its row and column are faster."""
RESIDENT = 8 << 20
"""Bytes of image and result up to which it is fast. With a filter of 3 x 3, 1000 x 1000 float32
take 0.16 ms, and 0.20 by `register`; 2000 x 2000 take 1.5 and 1.0, as it writes rows far apart."""


class Rolling(Convolution):
    """Tiles in the cache of a thread, and sums that roll down their columns."""

    name = "rolling"
    templates: ClassVar[tuple[str, ...]] = ("conv2d/rolling.cl.mako",)
    kernel = "conv2d_rolling"
    space = SearchSpace(
        (
            Parameter("VECTOR_WIDTH", VECTOR_WIDTHS, "values of a row in a vector"),
            Parameter("VECTORS", (1, 2, 3, 4), "vectors side by side"),
            Parameter(
                "TILE_BYTES",
                (1 << 13, 1 << 15, 1 << 16, 1 << 17, 1 << 18),
                "bytes of a tile and its halo",
            ),
        ),
        (vector_width("VECTOR_WIDTH"), positive("VECTORS"), positive("TILE_BYTES")),
    )

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need the caches of a CPU, room for a tile, and sums that stay in registers."""
        if device.kind != "cpu":
            return "its tiles need the caches of a CPU"
        halo = (problem.filter_width - 1) * problem.channels + max(VECTOR_WIDTHS)
        line = min(problem.out_width * problem.channels, MOST_COLUMNS) + halo
        least = (problem.filter_height + 1) * line * problem.sum_type.itemsize
        if least > passed_room(device):
            return "the device has no room for a tile of one row"
        if not problem.height * problem.width:
            return "an image without pixels has no rows to keep"
        return _too_large(problem) or super().supports(problem, device)

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return the widest vectors, and as many as have room in registers and in a row."""
        native = min(64, max(16, device.native_vector_bytes))
        values = max(1, problem.out_width * problem.channels)
        width = largest_power(min(native // problem.sum_type.itemsize, values))
        most = 4 if problem.filter_height <= FEW_ROWS else 2
        tile = max(1, min(TILE_BYTES, device.capabilities.local_memory // 2))
        vectors = largest_power(min(most, values // width))
        return Config(VECTOR_WIDTH=width, VECTORS=vectors, TILE_BYTES=tile)

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return one launch, with a work-group per tile of the result."""
        separated, one = is_separated(problem), FilterPass.whole(problem)
        arguments: dict[str, Argument] = {}
        if separated:
            buffers += line_buffers(problem)
            one = replace(one, weights="column")
            arguments["row_weights"] = "row"
        strip, word = _strip(problem, config), problem.sum_type.itemsize
        values = problem.out_width * problem.channels
        width = ceil_divide(values, ceil_divide(values, MOST_COLUMNS))
        if strip.width > width:
            raise InvalidConfig(
                f"{strip.width} values side by side are more than the {width} of a row of a tile"
            )
        line = round_up(width + (problem.filter_width - 1) * problem.channels, strip.vector_width)
        halo = problem.filter_height - 1 + separated
        rows = max(1, config.integer("TILE_BYTES") // (line * word) - halo)
        height = ceil_divide(problem.out_height, ceil_divide(problem.out_height, rows))
        arguments |= {
            "tile": LocalMemory((height + halo) * line * word),
            "line": np.int32(line),
            "tile_height": np.int32(height),
            "tile_width": np.int32(width),
        }
        return self._launches(
            problem,
            one,
            {"STRIP": strip, "SEPARABLE": separated},
            tile=(height, width),
            group=(1, 1),
            arguments=arguments,
            constant_weights=False,
            device=device,
        )

    def _taps(self, one: FilterPass) -> dict[str, Argument]:
        """Return no arguments: the kernel is built for one size of the filter."""
        return {}


def is_separated(problem: Conv2dProblem) -> bool:
    """Return whether rows are filtered before columns."""
    return problem.separable and problem.filter_height * problem.filter_width >= SEPARATED


def pays(problem: Conv2dProblem) -> bool:
    """Return whether it is the fastest on one thread."""
    return problem.work.bytes <= RESIDENT and _too_large(problem) is None


def _too_large(problem: Conv2dProblem) -> str | None:
    """Return why the filter is too large, or None."""
    rows, columns = problem.filter_shape
    taps = rows + columns if is_separated(problem) else rows * columns
    if rows > MOST_ROWS or taps > MOST_TAPS:
        return f"more than {MOST_ROWS} rows or {MOST_TAPS} weights do not stay in registers"
    if (columns - 1) * problem.channels > MOST_HALO:
        return f"a halo of more than {MOST_HALO} values is too long"
    return None


def _strip(problem: Conv2dProblem, config: Config) -> Strip:
    """Return the strip of a row that is computed at once."""
    width, vectors = config.integer("VECTOR_WIDTH"), config.integer("VECTORS")
    taps, piece = problem.filter_shape, piece_of(problem, width)
    return Strip(taps, problem.channels, width, vectors, problem.filter_width, piece)
