"""Sums along two neighbouring axes in one launch, on GPUs."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, largest_power, positive, sub_group
from opencl_lab.core.plan import (
    ARGUMENT_BYTES,
    Argument,
    Launch,
    LocalMemory,
    ceil_divide,
    passed_room,
    round_up,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.lines import TiledLines
from opencl_lab.ops.filters.numbers import MANY_REGISTERS
from opencl_lab.ops.filters.padded import Pass
from opencl_lab.ops.filters.planes import Pair, Planes, numbers_of, windows_of
from opencl_lab.ops.filters.problem import LinesProblem, Window

TEMPLATE = "filters/sheet.cl.mako"
BUSY = 4
"""Groups for each compute unit, if there are enough values."""
LONG_ROWS = 32
"""Least values at each place of an axis that is filtered alone."""
SUMMED = 32
"""Longest window of means whose values are added one by one."""


class Sheets(Planes):
    """Two neighbouring axes in one launch, and columns straight from the image."""

    name = "sheets"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE, *TiledLines.templates)
    space = SearchSpace(
        (
            Parameter("ROWS", (4, 8, 16), "sums of a column that an item makes side by side"),
            Parameter("TILE", (128, 256, 512), "values of a line, with those around it"),
            Parameter("BAND", (16, 32, 64, 128), "rows of results of a group, at most"),
            Parameter("WG_SIZE", (64, 128, 256), "items in a group"),
        ),
        tuple(map(positive, ("ROWS", "TILE", "BAND", "WG_SIZE"))),
    )

    def supports(self, problem: LinesProblem, device: Device) -> str | None:
        """Need a GPU, and a step that is not left to `TiledLines`."""
        if device.kind == "cpu":
            return "it is for GPUs"
        return self._lacks(problem, device)

    def default_config(self, problem: LinesProblem, device: Device) -> Config:
        """Return what was the fastest on an H200."""
        small = problem.sum_type.itemsize < 8 and len(problem.terms) == 1
        wide = largest_power(256, group_limit(device))
        return Config(ROWS=16 if small else 8, TILE=256, BAND=16, WG_SIZE=wide)

    def _is_ours(self, step: Pair | Pass) -> bool:
        if isinstance(step, Pair):
            return True
        problem, (window,) = step.problem, step.problem.windows
        weighted = problem.reduce == "sum" and not problem.exact
        inner = math.prod(problem.shape[window.axis + 1 :])
        return weighted and window.mode != "constant" and LONG_ROWS <= inner < 1 << 30

    def _fits(self, pair: Pair, config: Config, device: Device) -> bool:
        if pair.also and pair.first.problem.reduce != "sum":
            return False
        column, row = pair.column, pair.row
        if pair.first.problem.reduce == "mean" and max(column.size, row.size) > SUMMED:
            return False
        lines, taps = self._local(column, row, pair, config)
        room = lines + taps + self._rows(column, config) + 2 * ARGUMENT_BYTES
        return room <= passed_room(device)

    def _part(self, pair: Pair, config: Config) -> int:
        """Return the places of a tile: less than half of its values lie around it."""
        _, _, w, inner = pair.extents
        around = pair.row.size - 1
        tile = max(config.integer("TILE") // inner, 2 * around, 1)
        part = tile - around
        part = ceil_divide(w, ceil_divide(w, part))
        return round_up(part, 4) if inner == 1 else part

    def _rows(self, column: Window, config: Config) -> int:
        """Return the bytes of the numbers of rows."""
        return 4 * (column.size + config.integer("ROWS"))

    def _local(self, column: Window, row: Window, pair: Pair, config: Config) -> tuple[int, int]:
        """Return the bytes of lines and of weights."""
        itemsize, terms = pair.first.problem.sum_type.itemsize, 1 + len(pair.also)
        taps = terms * (round_up(column.size, 8) + round_up(row.size, 8))
        lines = terms * config.integer("ROWS") * self._pitch(pair, config)
        return lines * itemsize, taps * itemsize

    def _pitch(self, pair: Pair, config: Config) -> int:
        inner = pair.extents[-1]
        return round_up((self._part(pair, config) + pair.row.size + 7) * inner, 4)

    def _launch(self, pair: Pair, config: Config, device: Device) -> Launch:
        last, (outer, h, w, inner) = pair.second, pair.extents
        lines, taps = self._local(pair.column, pair.row, pair, config)
        arguments: dict[str, Argument] = {"image": pair.first.source}
        if pair.first.problem.reduce == "sum":
            arguments["weights"] = "weights"
            for t, (column, row) in enumerate(pair.first_weights):
                arguments[f"first_column_{t}"] = np.int32(column)
                arguments[f"first_row_{t}"] = np.int32(row)
        arguments |= {"result": last.target, "earlier": last.earlier or last.target}
        arguments |= {"lines": LocalMemory(lines), "taps": LocalMemory(taps)}
        arguments["rows"] = LocalMemory(self._rows(pair.column, config))
        arguments["pitch"] = np.int32(self._pitch(pair, config))
        grid = self._grid(self._part(pair, config), (outer, h, w), config, device)
        arguments |= {**grid[1], "h": np.int32(h), "w": np.int32(w), "inner": np.int32(inner)}
        arguments |= windows_of(pair.column, pair.row)
        squares = bool(pair.also) and "root" in last.combine
        params = {
            "NUMBERS": numbers_of(pair.first.problem, 1, last.combine),
            "TERMS": 1 + len(pair.also),
            "SQUARES": squares,
            "ALONE": False,
            "ADJACENT": inner == 1,
            "ROWS": config["ROWS"],
            "SUB_GROUP": sub_group(device, MANY_REGISTERS),
            "WG_SIZE": config["WG_SIZE"],
        }
        return self._launched(grid[0], params, arguments)

    def _launch_alone(self, one: Pass, config: Config, device: Device) -> Launch:
        problem, (window,) = one.problem, one.problem.windows
        outer, h = math.prod(problem.shape[: window.axis]), problem.shape[window.axis]
        w = math.prod(problem.shape[window.axis + 1 :])
        taps = problem.sum_type.itemsize * (round_up(window.size, 8) + 8)
        part = min(w, config.integer("WG_SIZE"))
        grid = self._grid(part, (outer, h, w), config, device)
        arguments: dict[str, Argument] = {"image": one.source, "weights": "weights"}
        arguments |= {"first_column_0": np.int32(one.first_weight), "first_row_0": np.int32(0)}
        arguments |= {"result": one.target, "earlier": one.earlier or one.target}
        arguments |= {"lines": LocalMemory(16), "taps": LocalMemory(taps)}
        arguments |= {"rows": LocalMemory(self._rows(window, config)), "pitch": np.int32(0)}
        arguments |= {**grid[1], "h": np.int32(h), "w": np.int32(w), "inner": np.int32(1)}
        arguments |= windows_of(window, Window(window.axis, 1, 0, "nearest"))
        params = {
            "NUMBERS": numbers_of(problem, 1, one.combine),
            "TERMS": 1,
            "SQUARES": False,
            "ALONE": True,
            "ADJACENT": True,
            "ROWS": config["ROWS"],
            "SUB_GROUP": sub_group(device, MANY_REGISTERS),
            "WG_SIZE": config["WG_SIZE"],
        }
        return self._launched(grid[0], params, arguments)

    def _launched(
        self, groups: int, params: dict[str, object], arguments: dict[str, Argument]
    ) -> Launch:
        wg_size = int(str(params["WG_SIZE"]))
        size = (groups * wg_size,)
        return Launch(TEMPLATE, "filter_sheet", params, size, (wg_size,), arguments)

    def _grid(
        self, part: int, extents: tuple[int, int, int], config: Config, device: Device
    ) -> tuple[int, dict[str, Argument]]:
        """Return the groups, and how the array is cut."""
        outer, h, w = extents
        parts, rows = ceil_divide(w, part), config.integer("ROWS")
        bands = ceil_divide(BUSY * device.compute_units, parts * outer)
        band = round_up(min(config.integer("BAND"), max(rows, h // bands)), rows)
        bands = ceil_divide(h, band)
        cut = {"parts": parts, "part": part, "bands": bands, "band": band}
        return parts * bands * outer, {name: np.int32(value) for name, value in cut.items()}
