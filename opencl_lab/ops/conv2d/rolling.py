"""The algorithm of a convolution for one thread: rolling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import VECTOR_WIDTHS, positive, vector_width
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
"""Most weights of a filter, or of its row and column, for which it is fast."""
FEW_ROWS = 3
"""Rows of a filter up to which four vectors of sums stay in registers; else two."""
SEPARATED = 25
"""Weights of a separable filter from which on its row and column are faster."""
RESIDENT = 8 << 20
"""Bytes of image and result up to which it is fast. With a filter of 3 x 3, 1000 x 1000 float32
take 0.16 ms, and 0.20 by `register`; 2000 x 2000 take 1.5 and 1.0, as it writes rows far apart."""


@dataclass(frozen=True)
class Form:
    """A way down the columns of a tile, for filters of so many rows."""

    vectors: int  # side by side
    rows: int  # of the filter: so many if `exact`, else at most so many
    exact: bool = False
    columns: int = 0  # of the filter; 0: a loop over any number


FORMS = (
    Form(4, 3, exact=True, columns=3),
    Form(4, FEW_ROWS),
    *(Form(2, rows, exact=True) for rows in (3, 5, 6, 7, 9, 11)),
    Form(2, MOST_ROWS),
    Form(1, MOST_ROWS),
)
"""A form with no more sums than a filter has rows takes 0.7 to 1.0 of the time of one with 15, and
each form 0.03 s to compile. An image that is narrower than a form's vectors takes a later one."""


class Rolling(Convolution):
    """Tiles in the cache of a thread, and sums that roll down their columns."""

    name = "rolling"
    templates: ClassVar[tuple[str, ...]] = ("conv2d/rolling.cl.mako",)
    kernel = "conv2d_rolling"
    space = SearchSpace(
        (
            Parameter("VECTOR_WIDTH", VECTOR_WIDTHS, "values of a row in a vector"),
            Parameter(
                "TILE_BYTES",
                (1 << 13, 1 << 15, 1 << 16, 1 << 17, 1 << 18),
                "bytes of a tile and its halo",
            ),
        ),
        (vector_width("VECTOR_WIDTH"), positive("TILE_BYTES")),
    )

    def supports(self, problem: Conv2dProblem, device: Device) -> str | None:
        """Need the caches of a CPU, room for a tile, and sums that stay in registers."""
        if device.kind != "cpu":
            return "its tiles need the caches of a CPU"
        halo = (problem.filter_width - 1) * problem.channels + 2 * max(VECTOR_WIDTHS)
        line = min(problem.out_width * problem.channels, MOST_COLUMNS) + halo
        least = (problem.filter_height + 1) * line * problem.sum_type.itemsize
        if least > passed_room(device):
            return "the device has no room for a tile of one row"
        if not problem.height * problem.width:
            return "an image without pixels has no rows to keep"
        return _too_large(problem) or super().supports(problem, device)

    def default_config(self, problem: Conv2dProblem, device: Device) -> Config:
        """Return the widest vectors, whatever the sizes, so that these share a program."""
        native = min(64, max(16, device.native_vector_bytes))
        tile = max(1, min(TILE_BYTES, device.capabilities.local_memory // 2))
        return Config(VECTOR_WIDTH=native // problem.sum_type.itemsize, TILE_BYTES=tile)

    def _solve(
        self, problem: Conv2dProblem, config: Config, device: Device, buffers: list[Buffer]
    ) -> list[Launch]:
        """Return one launch, with a work-group per tile of the result."""
        separated, one = is_separated(problem), FilterPass.whole(problem)
        arguments: dict[str, Argument] = {"row_weights": "weights", "row_taps": np.int32(0)}
        if separated:
            buffers += line_buffers(problem)
            one = replace(one, weights="column", taps=(problem.filter_height, 1))
            arguments = {"row_weights": "row", "row_taps": np.int32(problem.filter_width)}
        vector, word = config.integer("VECTOR_WIDTH"), problem.sum_type.itemsize
        strip = Strip((0, 0), problem.channels, vector, 1, 0, piece_of(problem, vector))
        values = problem.out_width * problem.channels
        width = ceil_divide(values, ceil_divide(values, MOST_COLUMNS))
        line = max(width, vector) + (problem.filter_width - 1) * problem.channels
        line = round_up(line, vector)
        halo = problem.filter_height - 1 + separated
        rows = max(1, config.integer("TILE_BYTES") // (line * word) - halo)
        height = ceil_divide(problem.out_height, ceil_divide(problem.out_height, rows))
        arguments["tile"] = LocalMemory((height + halo) * line * word)
        return self._launches(
            problem,
            one,
            {"STRIP": strip, "FORMS": FORMS, "MOST_HALO": MOST_HALO, "MOST_TAPS": MOST_TAPS},
            tile=(height, width),
            group=(1, 1),
            arguments=arguments,
            constant_weights=False,
            device=device,
        )


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
