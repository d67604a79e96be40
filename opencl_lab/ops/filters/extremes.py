"""The algorithm of minima and maxima along axes: two neighbouring ones in one launch."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, largest_power, positive
from opencl_lab.core.plan import (
    ARGUMENT_BYTES,
    CUDA_GROUPS,
    Argument,
    Buffer,
    Launch,
    LocalMemory,
    Plan,
    ceil_divide,
    passed_room,
    round_up,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.numbers import Numbers, lacks, lanes
from opencl_lab.ops.filters.problem import LONGEST, LinesProblem, Window
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "filters/extremes.cl.mako"
PART, GROUP_PART = 4096, 256
"""Values of a part of a row, for a group of one item and for one of several."""
BUSY = 8
"""Groups for each compute unit of a CPU, if there are enough rows."""
COLOURS = 16
"""Most values of a place along a row: of more, that axis counts as one of columns."""


class Pair(NamedTuple):
    """The windows down the columns and along the rows of outer x h x w x inner values."""

    column: Window
    row: Window
    outer: int
    h: int
    w: int
    inner: int


def _pairs(problem: LinesProblem) -> list[Pair]:
    """Return the launches of a problem: as few as there can be."""
    (windows,) = problem.terms
    shape, one = problem.shape, Window(-1, 1, 0, "constant")
    by_axis = {window.axis: window for window in windows}
    found = []
    axis = len(shape) - 1
    while axis >= 0:
        window, inner = by_axis.get(axis), math.prod(shape[axis + 1 :])
        before = math.prod(shape[:axis])
        if window is not None and inner > COLOURS:
            found.append(Pair(window, one, before, shape[axis], inner, 1))
        elif window is not None:
            column = by_axis.get(axis - 1, one)
            h = shape[axis - 1] if axis else 1
            found.append(Pair(column, window, before // h if h else 0, h, shape[axis], inner))
            axis -= 1
        axis -= 1
    return found


class Extremes(Algorithm[LinesProblem]):
    """Two axes in one launch: down the columns, then along the rows."""

    name = "extremes"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("ROWS", (2, 4, 8, 16), "rows of results that are computed side by side"),
            Parameter("BLOCK", (1, 2, 4), "vectors of a row that are computed side by side"),
            Parameter("WG_SIZE", (1, 64, 128, 256), "items in a group; CPUs: 1"),
        ),
        (positive("ROWS"), positive("BLOCK"), positive("WG_SIZE")),
    )

    def default_config(self, problem: LinesProblem, device: Device) -> Config:
        """Return groups of one item for CPUs."""
        wide = 1 if device.kind == "cpu" else largest_power(256, group_limit(device))
        return Config(ROWS=8, BLOCK=2 if wide == 1 else 1, WG_SIZE=wide)

    def supports(self, problem: LinesProblem, device: Device) -> str | None:
        """Need minima or maxima in the type of the array, and room for a part of some rows."""
        if problem.reduce not in ("min", "max") or problem.dtype != problem.result_type:
            return "it computes minima and maxima in the type of the array"
        if problem.complex or not problem.count:
            return "there is nothing to compare"
        config = self.default_config(problem, device)
        for pair in _pairs(problem):
            if pair.w * pair.inner >= LONGEST:
                return "rows are indexed with 32 bits"
            rooms = _rooms(problem, pair, config, device)
            if sum(rooms[1:]) + ARGUMENT_BYTES > passed_room(device):
                return "the window of a part of a row does not fit into local memory"
        return lacks(device, problem.dtype)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan a launch for each two neighbouring axes, and for each of the others."""
        buffers = [problem.image, problem.result]
        launches: list[Launch] = []
        pairs, source = _pairs(problem), "image"
        for number, pair in enumerate(pairs):
            target = "result"
            if number < len(pairs) - 1:
                target = f"line_{number % 2}"
            if target not in (buffer.name for buffer in buffers):
                buffers.append(Buffer(target, "scratch", problem.shape, problem.dtype))
            launches.append(_launch(problem, pair, config, device, source, target))
            source = target
        return Plan(tuple(buffers), tuple(launches))


def _rooms(
    problem: LinesProblem, pair: Pair, config: Config, device: Device
) -> tuple[int, int, int]:
    """Return how far lines are apart, and the bytes of local memory for lines and for places."""
    rows, wg_size = config.integer("ROWS"), config.integer("WG_SIZE")
    width = lanes(device, problem.dtype, wg_size)
    wide = ceil_divide(pair.w, _parts(pair, wg_size)) * pair.inner
    pitch = wide + (pair.row.size - 1) * pair.inner + 2 * config.integer("BLOCK") * width
    lines = pitch * rows * problem.dtype.itemsize * (1 if wg_size == 1 else 2)
    return pitch, lines, 8 * (pair.column.size + rows)


def _parts(pair: Pair, wg_size: int) -> int:
    """Return the parts of a row."""
    return min(pair.w, ceil_divide(pair.w * pair.inner, PART if wg_size == 1 else GROUP_PART))


def _launch(
    problem: LinesProblem, pair: Pair, config: Config, device: Device, source: str, target: str
) -> Launch:
    rows, wg_size = config.integer("ROWS"), config.integer("WG_SIZE")
    pitch, lines, places = _rooms(problem, pair, config, device)
    parts, planes, most = _parts(pair, wg_size), pair.outer, ceil_divide(pair.h, CUDA_GROUPS)
    if wg_size == 1:
        planes = min(planes, BUSY * device.compute_units)
        bands = ceil_divide(BUSY * device.compute_units, parts * planes)
        most = ceil_divide(pair.h, min(bands, ceil_divide(pair.h, rows)))
    band = round_up(most, rows)
    grid = (parts, ceil_divide(pair.h, band), min(planes, CUDA_GROUPS))
    width = lanes(device, problem.dtype, wg_size)
    kinds = (problem.dtype,) * 3
    arguments: dict[str, Argument] = {"image": source, "result": target}
    arguments |= {"lines": LocalMemory(lines), "places": LocalMemory(places)}
    arguments |= {"pitch": np.int32(pitch), "outer": np.uint64(pair.outer)}
    sizes = {"h": pair.h, "w": pair.w, "inner": pair.inner, "band": band}
    arguments |= {name: np.int32(value) for name, value in sizes.items()}
    for letter, window in (("y", pair.column), ("x", pair.row)):
        arguments[f"size_{letter}"] = np.int32(window.size)
        arguments[f"before_{letter}"] = np.int32(window.before)
        arguments[f"mode_{letter}"] = window.boundary
    params = {
        "NUMBERS": Numbers.of(*kinds, width, problem.reduce),
        "ROWS": rows,
        "BLOCK": config["BLOCK"],
        "WG_SIZE": wg_size,
    }
    return Launch(
        TEMPLATE,
        "filter_extremes",
        params,
        (grid[0] * wg_size, *grid[1:]),
        (wg_size, 1, 1),
        {**arguments, **problem.outside(problem.dtype)},
    )
