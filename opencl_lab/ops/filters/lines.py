"""The algorithm of filters along lines: tiles in local memory."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import group_limit, largest_power, positive
from opencl_lab.core.plan import (
    CUDA_GROUPS,
    Argument,
    Launch,
    LocalMemory,
    Plan,
    ceil_divide,
    passed_room,
    round_up,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.numbers import Numbers, lacks, lanes
from opencl_lab.ops.filters.padded import Pass, line_buffers, passes
from opencl_lab.ops.filters.problem import LinesProblem
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "filters/line.cl.mako"
LEAST = 4096
"""Least values of a group, if there are so many."""
BUSY = 8
"""Groups for each compute unit, if there are enough values."""
SHORT = 4
"""Vectors of a CPU in a line that is filtered together with others; on GPUs items of a group."""
TOGETHER = 8192
"""Values of a tile of such lines."""
LONG_ROWS = 8
"""Rows of a tile for each value of the window: fewer are read again by neighbours too often."""


class Tile(NamedTuple):
    """How lines are cut; see the template."""

    rows: int
    part: int
    chunks: int
    lines: int
    room: int
    together: int = 1


class TiledLines(Algorithm[LinesProblem]):
    """Tiles in local memory, with what lies around them."""

    name = "tiled"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("BLOCK", (1, 2, 4, 8), "vectors that an item reduces side by side"),
            Parameter(
                "TILE_BYTES",
                tuple(1 << power for power in range(13, 19)),
                "bytes of a tile and what lies around it",
            ),
            Parameter("WG_SIZE", (1, 64, 128, 256), "items in a group; CPUs: 1"),
        ),
        (positive("BLOCK"), positive("TILE_BYTES"), positive("WG_SIZE")),
    )

    def default_config(self, problem: LinesProblem, device: Device) -> Config:
        """Return tiles that stay in the second cache of a CPU."""
        room = passed_room(device)
        if device.kind == "cpu":
            return Config(BLOCK=4, TILE_BYTES=min(256 << 10, room), WG_SIZE=1)
        wide = largest_power(256, group_limit(device))
        return Config(BLOCK=4, TILE_BYTES=min(24 << 10, room), WG_SIZE=wide)

    def supports(self, problem: LinesProblem, device: Device) -> str | None:
        """Need the types, and room for the window of a few lines."""
        for one in passes(problem, []) if problem.count else ():
            if self._tile(one, self.default_config(problem, device), device) is None:
                return f"a window of {one.problem.places:,} values does not fit into local memory"
        return lacks(device, problem.dtype, problem.result_type, problem.sum_type)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan one launch for each pass."""
        buffers = line_buffers(problem)
        if not problem.count:
            return Plan(tuple(buffers), ())
        found = passes(problem, buffers)
        return Plan(tuple(buffers), tuple(self.launch(one, config, device) for one in found))

    def _tile(self, one: Pass, config: Config, device: Device) -> Tile | None:
        """Return how lines are cut, or None if not even one row of results fits."""
        problem, (window,) = one.problem, one.problem.windows
        total = _total(one)
        n, inner = problem.shape[window.axis], math.prod(problem.shape[window.axis + 1 :])
        outer = math.prod(problem.shape[: window.axis])
        wg_size = config.integer("WG_SIZE")
        width = lanes(device, total, wg_size)
        step = config.integer("BLOCK") * wg_size * width
        tiles = 1 if problem.reduce == "sum" else 3

        def room_of(nbytes: int) -> int:
            return nbytes // total.itemsize // tiles - step

        def fitting(nbytes: int) -> Tile | None:
            room = room_of(nbytes)
            part = min(inner, max(room // (LONG_ROWS * window.size), width, 32))
            part = min(inner, round_up(ceil_divide(inner, ceil_divide(inner, part)), max(width, 2)))
            rows = min(n, room // part - window.size + 1)
            return None if rows < 1 else Tile(rows, part, ceil_divide(inner, part), 1, room + step)

        # Long windows get all memory that there is.
        tile = fitting(min(config.integer("TILE_BYTES"), passed_room(device)))
        if tile is None or tile.rows < min(n, window.size):
            tile = fitting(passed_room(device)) or tile
        if tile is None:
            return None
        groups = min(BUSY * device.compute_units, ceil_divide(n * inner * outer, LEAST))
        rows = min(tile.rows, max(window.size, ceil_divide(n * tile.chunks * outer, groups)))
        rows = ceil_divide(n, ceil_divide(n, rows))
        lines = max(1, min(LEAST // (rows * tile.part), outer // groups))
        lines = max(lines, ceil_divide(outer, CUDA_GROUPS))
        step_room = (rows + window.size - 1) * tile.part + step
        unit = width if device.kind == "cpu" else 1
        most = SHORT * (width if device.kind == "cpu" else wg_size)
        alone = width > 1 and (inner >= width or one.combine)
        if n * inner <= most and outer >= 2 * unit and not alone:
            of_a_line = (n + window.size - 1) * inner
            fitting_lines = min(TOGETHER, room_of(passed_room(device))) // of_a_line
            together = max(unit, min(fitting_lines, outer) // unit * unit)
            lines = round_up(max(lines, ceil_divide(outer, groups)), together)
            if together * of_a_line <= room_of(passed_room(device)):
                step_room = together * of_a_line + step
                return Tile(n, inner, 1, lines, step_room, together)
        return tile._replace(rows=rows, lines=lines, room=step_room)

    def launch(self, one: Pass, config: Config, device: Device) -> Launch:
        """Return the launch of a pass."""
        problem, (window,) = one.problem, one.problem.windows
        tile, total = self._tile(one, config, device), _total(one)
        if tile is None:
            raise InvalidConfig(f"{config} leaves no room for a window of {window.size:,} values")
        n, inner = problem.shape[window.axis], math.prod(problem.shape[window.axis + 1 :])
        outer, wg_size = math.prod(problem.shape[: window.axis]), config.integer("WG_SIZE")
        numbers = Numbers.of(
            problem.dtype,
            total,
            problem.result_type,
            lanes(device, total, wg_size),
            problem.reduce,
            combine=one.combine,
            complex=problem.complex,
        )
        arguments: dict[str, Argument] = {"image": one.source}
        tiles = 3
        if problem.reduce == "sum":
            tiles = 1
            arguments |= {"weights": "weights", "first_weight": np.int32(one.first_weight)}
            arguments["paired"] = np.int32(window.symmetry)
        arguments |= {"result": one.target, "earlier": one.earlier or one.target}
        outside = problem.outside(total)
        return Launch(
            TEMPLATE,
            "filter_line",
            {"NUMBERS": numbers, "BLOCK": config["BLOCK"], "WG_SIZE": wg_size},
            (ceil_divide(n, tile.rows) * tile.chunks * wg_size, ceil_divide(outer, tile.lines)),
            (wg_size, 1),
            {
                **arguments,
                "tile": LocalMemory(tiles * tile.room * total.itemsize),
                "room": np.int32(tile.room),
                "outer": np.uint64(outer),
                "n": np.int32(n),
                "inner": np.int64(inner),
                "rows": np.int32(tile.rows),
                "part": np.int32(tile.part),
                "chunks": np.int32(tile.chunks),
                "lines": np.int32(tile.lines),
                "together": np.int32(tile.together),
                "size": np.int32(window.size),
                "before": np.int32(window.before),
                "mode": window.boundary,
                **outside,
            },
        )


def _total(one: Pass) -> np.dtype[np.generic]:
    """Return the type of a tile: that of sums, or of the numbers that are compared."""
    compared = one.problem.reduce in ("min", "max")
    return one.problem.dtype if compared else one.problem.sum_type
