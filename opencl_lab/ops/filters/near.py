"""Sums of products in small windows, straight from the image."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    INDEX_LIMIT,
    group_limit,
    item_launch,
    largest_power,
    positive,
    sub_group,
)
from opencl_lab.core.plan import Argument, Launch, LocalMemory, Plan, ceil_divide
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.numbers import MANY_REGISTERS, is_whole, lacks, lanes
from opencl_lab.ops.filters.padded import line_buffers, window_buffers
from opencl_lab.ops.filters.planes import numbers_of
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, Window, WindowProblem
from opencl_lab.ops.solver import Algorithm, P

TEMPLATE = "filters/near.cl.mako"
NAMES = tuple(item.name for item in fields(FilterProblem))
"""What a problem of lines and one of windows share."""
LARGEST = 7
"""Longest side of a window: its taps are unrolled."""
BUSY = 4
"""Groups for each compute unit of a CPU, if there are enough values."""
LEAST = 1 << 14
"""Values of a group of a CPU, if there are so many."""

Tap = tuple[int, int, int]
"""Row and column of a tap, and the place of its weight."""


@dataclass(frozen=True)
class _Box:
    """A window of three dimensions, and the array as planes, rows, places, and values at each."""

    windows: tuple[Window, ...]
    extents: tuple[int, ...]
    inner: int
    levels: tuple[tuple[int, tuple[Tap, ...]], ...]
    depth: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(window.size for window in self.windows)


def _axes(problem: WindowProblem) -> tuple[tuple[Window, ...], tuple[int, ...]] | None:
    """Return windows and lengths of three axes, or None if there are more."""
    if len(problem.axes) > 3:
        return None
    alone = Window(0, 1, 0, "nearest")
    # Rows beyond the last one are read, too, and windows of one value may have any mode.
    axes = [(one if one.size > 1 else alone, n) for one, n in problem.axes]
    axes = [(alone, 1)] * (3 - len(axes)) + axes
    windows, extents = tuple(one for one, _ in axes), tuple(n for _, n in axes)
    small = all(one.size <= LARGEST and one.mode != "constant" for one in windows)
    area = math.prod(extents[1:]) * problem.inner
    return (windows, extents) if small and area < INDEX_LIMIT else None


class _Near(Algorithm[P]):
    """What both algorithms share."""

    templates: ClassVar[tuple[str, ...]] = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("LAYERS", (1, 2, 3), "planes of results side by side; CPUs: 1"),
            Parameter("ROWS", (2, 4, 8, 16), "rows of results that are computed side by side"),
            Parameter("BLOCK", (1, 2, 4), "vectors of a row that are computed side by side"),
            Parameter("WG_SIZE", (1, 64, 128, 256), "items in a group; CPUs: 1"),
        ),
        (*map(positive, ("LAYERS", "ROWS", "BLOCK", "WG_SIZE")),),
    )

    def default_config(self, problem: P, device: Device) -> Config:
        """Return groups of one item for CPUs, and few results where registers are few."""
        if device.kind == "cpu":
            return Config(LAYERS=1, ROWS=4, BLOCK=1, WG_SIZE=1)
        wide = largest_power(128, group_limit(device))
        if device.capabilities.item_registers:
            return Config(LAYERS=1, ROWS=4, BLOCK=1, WG_SIZE=wide)
        return Config(LAYERS=3, ROWS=8, BLOCK=1, WG_SIZE=wide)

    def _box(self, problem: Any) -> _Box | None:
        """Return the window of a problem, if it is small and no mode is constant."""
        raise NotImplementedError

    def supports(self, problem: P, device: Device) -> str | None:
        """Need a small window, and sums of which the order does not matter."""
        assert isinstance(problem, FilterProblem)
        if problem.reduce != "sum" or problem.exact or not problem.count:
            return "it makes sums of products that need no certain order"
        if self._box(problem) is None:
            return f"it takes full windows and crosses of up to {LARGEST} values a side"
        return lacks(device, problem.dtype, problem.result_type, problem.sum_type)

    def _launch(self, problem: FilterProblem, config: Config, device: Device) -> Launch:
        box = self._box(problem)
        assert box is not None  # it is supported
        width, rows = lanes(device, problem.sum_type, config.integer("WG_SIZE")), config["ROWS"]
        n_z, n_y, n_x = box.extents
        blocks, span = ceil_divide(n_y, config.integer("ROWS")), 1
        layers = min(config.integer("LAYERS"), box.depth) if width == 1 else 1
        items = ceil_divide(n_z, layers) * blocks * n_x * box.inner
        if width > 1:
            groups = min(BUSY * device.compute_units, ceil_divide(problem.count, LEAST))
            span = ceil_divide(n_z * blocks, groups)
            items = ceil_divide(n_z * blocks, span)
        arguments: dict[str, Argument] = {"image": "image", "weights": "weights"}
        if width == 1:
            arguments["taps"] = LocalMemory(problem.taps * problem.sum_type.itemsize)
        arguments |= {"result": "result", "blocks": np.int32(blocks), "span": np.int32(span)}
        for letter, window, n in zip("zyx", box.windows, box.extents, strict=True):
            arguments |= {f"n_{letter}": np.int32(n), f"before_{letter}": np.int32(window.before)}
            arguments[f"mode_{letter}"] = window.boundary
        arguments["inner"] = np.int32(box.inner)
        params = {
            "NUMBERS": numbers_of(problem, width, ()),
            "SIZES": box.sizes,
            "LEVELS": box.levels,
            "DEPTH": box.depth,
            "LAYERS": layers,
            "ROWS": rows,
            "BLOCK": config["BLOCK"],
            "SUB_GROUP": sub_group(device, MANY_REGISTERS),
            "WG_SIZE": config["WG_SIZE"],
        }
        return item_launch(TEMPLATE, "filter_near", items, params, arguments)


class NearWindow(_Near[WindowProblem]):
    """A full window, on GPUs: CPUs need no program of its own for each size."""

    name = "near"

    def supports(self, problem: WindowProblem, device: Device) -> str | None:
        """Need a GPU, too."""
        if device.kind == "cpu":
            return "it is for GPUs"
        return super().supports(problem, device)

    def _box(self, problem: WindowProblem) -> _Box | None:
        found = _axes(problem)
        if found is None or problem.places != math.prod(one.size for one in problem.windows):
            return None
        depth, height, width = (window.size for window in found[0])
        taps = tuple((y, x, y * width + x) for y in range(height) for x in range(width))
        return _Box(*found, problem.inner, ((0, taps),), depth)

    def plan(self, problem: WindowProblem, config: Config, device: Device) -> Plan:
        """Plan one launch."""
        return Plan(tuple(window_buffers(problem)), (self._launch(problem, config, device),))


class NearCross(_Near[LinesProblem]):
    """The sum of filters along one axis each."""

    name = "cross"

    def _box(self, problem: LinesProblem) -> _Box | None:
        windows = [term[0] for term in problem.terms if len(term) == 1]
        axes = {window.axis for window in windows}
        kind, total = problem.result_type, problem.sum_type
        uncut = total == kind or (is_whole(total) and kind.kind != "b")
        several = len(problem.terms) > 1 and len(windows) == len(axes) == len(problem.terms)
        if not several or problem.root or not uncut:
            return None
        shared = {name: getattr(problem, name) for name in NAMES}
        whole = WindowProblem(**shared, windows=tuple(windows))
        found = _axes(whole)
        if found is None:
            return None
        *_, z, y, x = found[0]
        taps: dict[int, list[Tap]] = {level: [] for level in range(z.size)}
        weight = 0
        for window in windows:
            for place in range(window.size):
                at = [place if window is one else one.before for one in (z, y, x)]
                taps[at[0]].append((at[1], at[2], weight))
                weight += 1
        levels = tuple((level, tuple(found_taps)) for level, found_taps in taps.items())
        return _Box(*found, whole.inner, levels)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan one launch."""
        return Plan(tuple(line_buffers(problem)), (self._launch(problem, config, device),))
