"""The algorithm of sums along two neighbouring axes: both in one launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import positive
from opencl_lab.core.plan import (
    Argument,
    Buffer,
    Launch,
    LocalMemory,
    Plan,
    ceil_divide,
    passed_room,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.lines import LEAST, TiledLines
from opencl_lab.ops.filters.numbers import Numbers, is_whole, lanes
from opencl_lab.ops.filters.padded import Pass, line_buffers, passes
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, Window
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "filters/plane.cl.mako"
PART = 1024
"""Values of a part of a row."""
BUSY = 4
"""Groups for each compute unit, if there are enough values."""


@dataclass(frozen=True)
class Pair:
    """Two passes that follow each other, along neighbouring axes.

    Of several terms with equal windows there are several pairs, made in one launch.
    """

    first: Pass
    second: Pass
    also: tuple[tuple[Pass, Pass], ...] = ()

    @cached_property
    def _ordered(self) -> tuple[Pass, Pass]:
        both = self.first, self.second
        column, row = sorted(both, key=lambda one: one.problem.windows[0].axis)
        return column, row

    @property
    def column(self) -> Window:
        """The window down the columns."""
        return self._ordered[0].problem.windows[0]

    @property
    def row(self) -> Window:
        """The window along the rows."""
        return self._ordered[1].problem.windows[0]

    @property
    def _windows(self) -> tuple[Window, Window]:
        return replace(self.column, symmetry=0), replace(self.row, symmetry=0)

    @property
    def first_weights(self) -> list[tuple[int, int]]:
        """Where the weights of columns and rows begin, of each term."""
        pairs = (self, *(Pair(*both) for both in self.also))
        return [(one._ordered[0].first_weight, one._ordered[1].first_weight) for one in pairs]

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Planes, rows, places of a row, and values of a place."""
        shape = self.first.problem.shape
        axis = self.column.axis
        return (math.prod(shape[:axis]), shape[axis], shape[axis + 1], math.prod(shape[axis + 2 :]))

    @property
    def is_one(self) -> bool:
        """Whether one launch makes the results of both, whatever its tiles."""
        first, second = self.first, self.second
        one, other = first.problem.windows[0], second.problem.windows[0]
        if second.source != first.target or abs(one.axis - other.axis) != 1:
            return False
        kind, total = first.problem.result_type, first.problem.sum_type
        if first.problem.reduce not in ("sum", "mean"):
            return False
        # Means that are cut after each axis depend on the order of axes, and on what is cut off.
        held = one.axis < other.axis and np.can_cast(first.problem.dtype, kind)
        sure = first.problem.reduce == "sum" or held
        uncut = total == kind or (is_whole(total) and kind.kind != "b" and sure)
        return uncut and "constant" not in (one.mode, other.mode)

    def joined(self, others: Sequence[tuple[Pass, Pass]]) -> Pair | None:
        """Return this pair with those of other terms, or None if they need other windows."""
        pairs = [Pair(*both) for both in others]
        problem = self.first.problem
        alike = all(one.is_one and one._windows == self._windows for one in pairs)
        if not (self.is_one and alike and problem.sum_type == problem.result_type):
            return None
        last = others[-1][1]
        words = tuple(word for word in last.combine if word == "root")
        second = replace(self.second, target=last.target, combine=words, earlier="")
        return Pair(self.first, second, tuple(others))


class Planes(Algorithm[LinesProblem]):
    """Two neighbouring axes in one launch, the others by `TiledLines`."""

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
        return self._lacks(problem, device)

    def _lacks(self, problem: LinesProblem, device: Device) -> str | None:
        config = self.default_config(problem, device)
        steps = self._steps(problem, passes(problem, []), config, device) if problem.count else []
        if not any(self._is_ours(step) for step in steps):
            return "no two axes are filtered by sums that can be made in one launch"
        return self._lines.supports(problem, device)

    def plan(self, problem: LinesProblem, config: Config, device: Device) -> Plan:
        """Plan a launch for each two passes that fit, and one for each of the others."""
        buffers = line_buffers(problem)
        alone = self._lines.default_config(problem, device)
        launches: list[Launch] = []
        target = ""
        for step in self._steps(problem, passes(problem, buffers), config, device):
            first, last = (step.first, step.second) if isinstance(step, Pair) else (step, step)
            # The second of two passes would write where the first one reads.
            source = "image" if first.source == "image" else target
            target = last.target
            if target == source:
                target = "line_1" if source == "line_0" else "line_0"
            if isinstance(step, Pair):
                ends = replace(first, source=source), replace(last, target=target)
                pair = replace(step, first=ends[0], second=ends[1])
                launches.append(self._launch(pair, config, device))
            else:
                one = replace(step, source=source, target=target)
                if self._is_ours(one):
                    launches.append(self._launch_alone(one, config, device))
                else:
                    launches.append(self._lines.launch(one, alone, device))
        used = {
            item for one in launches for item in one.arguments.values() if isinstance(item, str)
        }
        kept: list[Buffer] = [one for one in buffers if one.role != "scratch" or one.name in used]
        return Plan(tuple(kept), tuple(launches))

    def _steps(
        self, problem: LinesProblem, found: list[Pass], config: Config, device: Device
    ) -> list[Pair | Pass]:
        """Return the passes, and in place of two that fit their pair: the last axes first."""
        terms, begin = [], 0
        for windows in problem.terms:
            terms.append(found[begin : begin + len(windows)])
            begin += len(windows)
        if len(terms) > 1 and all(len(term) == 2 for term in terms):
            first, *others = ((term[0], term[1]) for term in terms)
            joined = Pair(*first).joined(others)
            if joined is not None and self._fits(joined, config, device):
                return [joined]
        steps: list[Pair | Pass] = []
        for term in terms:
            reverse: list[Pair | Pass] = []
            while term:
                pair = Pair(term[-2], term[-1]) if len(term) > 1 else None
                if pair is not None and pair.is_one and self._fits(pair, config, device):
                    reverse.append(pair)
                    term = term[:-2]
                else:
                    reverse.append(term[-1])
                    term = term[:-1]
            steps += reverse[::-1]
        return steps

    def _is_ours(self, step: Pair | Pass) -> bool:
        """Return whether a step is not left to `TiledLines`."""
        return isinstance(step, Pair)

    def _fits(self, pair: Pair, config: Config, device: Device) -> bool:
        """Return whether there is room for the lines of a pair."""
        column, row, total = pair.column, pair.row, pair.first.problem.sum_type
        _, _, w, inner = pair.extents
        block = config.integer("BLOCK") * lanes(device, total)
        least = w // ceil_divide(w * inner, PART) * inner
        rows, lines = config.integer("ROWS"), self._lines_of(pair, config)
        room = 8 * (column.size + row.size + rows)
        room += 8 * lines * (PART + (row.size + 1) * inner + 2 * block)
        return not pair.also and block <= least and room <= passed_room(device)

    def _lines_of(self, pair: Pair, config: Config) -> int:
        """Return the lines in local memory: means have one more."""
        return config.integer("ROWS") + (pair.first.problem.reduce == "mean")

    def _launch_alone(self, one: Pass, config: Config, device: Device) -> Launch:
        raise NotImplementedError

    def _launch(self, pair: Pair, config: Config, device: Device) -> Launch:
        problem, last, (column, row) = pair.first.problem, pair.second, (pair.column, pair.row)
        outer, h, w, inner = pair.extents
        ((first_column, first_row),) = pair.first_weights
        width = lanes(device, problem.sum_type)
        numbers = numbers_of(problem, width, last.combine)
        parts, rows = ceil_divide(w * inner, PART), config.integer("ROWS")
        pitch = (ceil_divide(w, parts) + row.size) * inner + 2 * config.integer("BLOCK") * width
        lines = pitch * self._lines_of(pair, config)
        groups = min(BUSY * device.compute_units, ceil_divide(problem.count, 4 * LEAST))
        band = max(rows, ceil_divide(h * parts * outer, groups))
        bands = ceil_divide(h, band)
        arguments: dict[str, Argument] = {"image": pair.first.source}
        if problem.reduce == "sum":
            arguments |= {"weights": "weights", "first_column": np.int32(first_column)}
            arguments["first_row"] = np.int32(first_row)
        arguments |= {"result": last.target, "earlier": last.earlier or last.target}
        arguments["lines"] = LocalMemory(lines * problem.sum_type.itemsize)
        arguments["places"] = LocalMemory(8 * (column.size + rows))
        extents = {"pitch": pitch, "h": h, "w": w, "inner": inner, "band": ceil_divide(h, bands)}
        arguments |= {name: np.int32(value) for name, value in extents.items()}
        arguments |= windows_of(column, row)
        size = (parts, ceil_divide(h, ceil_divide(h, bands)), outer)
        params = {"NUMBERS": numbers, **config}
        return Launch(TEMPLATE, "filter_plane", params, size, (1, 1, 1), arguments)


def numbers_of(problem: FilterProblem, width: int, combine: tuple[str, ...]) -> Numbers:
    """Return what templates know of a problem's numbers."""
    kinds = problem.dtype, problem.sum_type, problem.result_type
    return Numbers.of(*kinds, width, problem.reduce, combine=combine, complex=problem.complex)


def windows_of(column: Window, row: Window) -> dict[str, Argument]:
    """Return the arguments of two windows."""
    arguments: dict[str, Argument] = {}
    for letter, window in (("y", column), ("x", row)):
        arguments[f"size_{letter}"] = np.int32(window.size)
        arguments[f"before_{letter}"] = np.int32(window.before)
        arguments[f"mode_{letter}"] = window.boundary
    return arguments
