"""The algorithm of sums along two neighbouring axes: both in one launch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import positive
from opencl_lab.core.plan import Argument, Launch, LocalMemory, Plan, ceil_divide, passed_room
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.lines import LEAST, TiledLines
from opencl_lab.ops.filters.numbers import Numbers, is_whole, lanes
from opencl_lab.ops.filters.padded import Pass, line_buffers, passes
from opencl_lab.ops.filters.problem import LinesProblem
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "filters/plane.cl.mako"
PART = 1024
"""Values of a part of a row."""
BUSY = 4
"""Groups for each compute unit, if there are enough values."""


class Planes(Algorithm[LinesProblem]):
    """The last two of the axes in one launch, the others by `TiledLines`."""

    name = "planes"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE, *TiledLines.templates)
    space = SearchSpace(
        (
            Parameter("ROWS", (2, 4, 8), "rows of results that are computed side by side"),
            Parameter("BLOCK", (1, 2, 4), "vectors of a row that are computed side by side"),
        ),
        (positive("ROWS"), positive("BLOCK")),
    )

    def __init__(self) -> None:
        self._lines = TiledLines()

    def default_config(self, problem: LinesProblem, device: Device) -> Config:
        """Return as many sums as there are registers for."""
        return Config(ROWS=8, BLOCK=2)

    def supports(self, problem: LinesProblem, device: Device) -> str | None:
        """Need a CPU, and two axes that follow each other in the array."""
        if device.kind != "cpu":
            return "it reads rows as the caches of a CPU do"
        config = self.default_config(problem, device)
        if not problem.count or not any(
            self._fits(pair, config, device) for pair in _pairs(passes(problem, []))
        ):
            return "no two axes are filtered by sums that can be made in one launch"
        return self._lines.supports(problem, device)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan a launch for each two passes that fit, and one for each of the others."""
        buffers = line_buffers(problem)
        found = passes(problem, buffers)
        alone = self._lines.default_config(problem, device)
        launches: list[Launch] = []
        done: list[Pass] = []
        target = ""
        for pair in _pairs(found):
            if pair[0] in done:
                continue
            steps = pair if self._fits(pair, config, device) else pair[:1]
            done += steps
            # The second of two passes would write where the first one reads.
            source = "image" if steps[0].source == "image" else target
            target = steps[-1].target
            if target == source:
                target = "line_1" if source == "line_0" else "line_0"
            if len(steps) > 1:
                ends = replace(steps[0], source=source), replace(steps[1], target=target)
                launches.append(self._launch(ends, config, device))
            else:
                one = replace(steps[0], source=source, target=target)
                launches.append(self._lines.launch(one, alone, device))
        used = {
            item for one in launches for item in one.arguments.values() if isinstance(item, str)
        }
        kept = [one for one in buffers if one.role != "scratch" or one.name in used]
        return Plan(tuple(kept), tuple(launches))

    def _fits(self, pair: tuple[Pass, ...], config: Config, device: Device) -> bool:
        """Return whether two passes follow each other, in either order of their axes."""
        if len(pair) < 2 or pair[1].source != pair[0].target:
            return False
        first, second = (one.problem for one in pair)
        (one,), (other,) = first.windows, second.windows
        uncut = is_whole(first.sum_type) and first.result_type.kind != "b"
        commute = first.reduce == "sum" and (uncut or first.sum_type == first.result_type)
        if not commute or abs(one.axis - other.axis) != 1 or "constant" in (one.mode, other.mode):
            return False
        row = max(one, other, key=lambda window: window.axis)
        w, inner = first.shape[row.axis], math.prod(first.shape[row.axis + 1 :])
        block = config.integer("BLOCK") * lanes(device, first.sum_type)
        least = w // ceil_divide(w * inner, PART) * inner
        rows = config.integer("ROWS")
        room = 8 * (one.size + other.size + rows)
        room += 8 * rows * (PART + (row.size + 1) * inner + 2 * block)
        return block <= least and room <= passed_room(device)

    def _launch(self, pair: tuple[Pass, ...], config: Config, device: Device) -> Launch:
        (one,), (other,) = (step.problem.windows for step in pair)
        (column, first_column), (row, first_row) = sorted(
            ((one, pair[0].first_weight), (other, pair[1].first_weight)),
            key=lambda item: item[0].axis,
        )
        problem, last = pair[0].problem, pair[1]
        shape = problem.shape
        h, w, inner = shape[column.axis], shape[row.axis], math.prod(shape[row.axis + 1 :])
        outer = math.prod(shape[: column.axis])
        width = lanes(device, problem.sum_type)
        numbers = Numbers.of(
            problem.dtype,
            problem.sum_type,
            problem.result_type,
            width,
            "sum",
            combine=last.combine,
            complex=problem.complex,
        )
        parts, rows = ceil_divide(w * inner, PART), config.integer("ROWS")
        pitch = (ceil_divide(w, parts) + row.size) * inner + 2 * config.integer("BLOCK") * width
        groups = min(BUSY * device.compute_units, ceil_divide(problem.count, 4 * LEAST))
        band = max(rows, ceil_divide(h * parts * outer, groups))
        bands = ceil_divide(h, band)
        arguments: dict[str, Argument] = {"image": pair[0].source, "weights": "weights"}
        arguments |= {"first_column": np.int32(first_column), "first_row": np.int32(first_row)}
        arguments |= {"result": last.target, "earlier": last.earlier or last.target}
        arguments["lines"] = LocalMemory(rows * pitch * problem.sum_type.itemsize)
        arguments["places"] = LocalMemory(8 * (column.size + rows))
        numbers_of = {"pitch": pitch, "h": h, "w": w, "inner": inner}
        numbers_of["band"] = ceil_divide(h, bands)
        arguments |= {name: np.int32(value) for name, value in numbers_of.items()}
        for letter, window in (("y", column), ("x", row)):
            arguments[f"size_{letter}"] = np.int32(window.size)
            arguments[f"before_{letter}"] = np.int32(window.before)
            arguments[f"mode_{letter}"] = window.boundary
        size = (parts, ceil_divide(h, ceil_divide(h, bands)), outer)
        params = {"NUMBERS": numbers, **config}
        return Launch(TEMPLATE, "filter_plane", params, size, (1, 1, 1), arguments)


def _pairs(found: list[Pass]) -> list[tuple[Pass, ...]]:
    """Return each pass with the next one, and the last one alone."""
    return [tuple(found[i : i + 2]) for i in range(len(found))]
