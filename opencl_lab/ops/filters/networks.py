"""The algorithm of minima, maxima and ranks of small windows: networks of comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    divides,
    group_limit,
    largest_power,
    positive,
    power_of_two,
    sub_group,
)
from opencl_lab.core.plan import (
    CUDA_GROUPS,
    Argument,
    Buffer,
    Launch,
    Plan,
    ceil_divide,
)
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.filters.numbers import MANY_REGISTERS, Numbers, lacks, lanes
from opencl_lab.ops.filters.problem import LONGEST, Window, WindowProblem
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "filters/network.cl.mako"
MOST_VALUES = 36
"""Values of the largest window: programs of larger ones take seconds to build."""
MOST_ROWS = 256
"""Rows that an item of a CPU reads for some rows of results."""
COLOURS = 4
"""Most values of a place along the last axis: of more, that axis counts as one of rows."""
PART = 2048
"""Values of a row that a group of a CPU filters before it goes on to the next rows."""
BUSY = 8
"""Groups for each compute unit of a CPU, if there are enough rows."""


class Step(NamedTuple):
    """The smaller or the larger one of two values."""

    name: str
    kind: str
    one: str
    other: str


class Sorted(NamedTuple):
    """Names of values in their order, and how many are left out that are surely below and above."""

    names: tuple[str, ...]
    below: int
    above: int


Place = tuple[int, int, int]
"""A place of a window: the number of its plane, its row and its column."""


@dataclass(frozen=True)
class Network:
    """How windows at `results` neighbouring rows are reduced to the value of a rank.

    `places` are those of a window that count. What several windows have in common is sorted once:
    the values of a row first, then rows are merged. A value that cannot have the wanted rank any
    more is left out.
    """

    places: tuple[Place, ...]
    rank: int
    results: int

    def read(self) -> dict[tuple[int, int], list[int]]:
        """Return the columns that are read, by plane and row."""
        found: dict[tuple[int, int], set[int]] = {}
        for plane, row, column in self.places:
            for result in range(self.results):
                found.setdefault((plane, row + result), set()).add(column)
        return {row: sorted(columns) for row, columns in sorted(found.items())}

    def steps(self) -> tuple[list[Step], list[str]]:
        """Return all comparisons in their order, and the names of the results.

        The value at column i of row j of plane p is named ``v_p_j_i``.
        """
        made = _Steps(len(self.places), self.rank)
        results = [""] * self.results
        self._reduce(made, 0, self.results, frozenset(), None, results)
        needed, kept = set(results), []
        for step in reversed(made.steps):
            if step.name in needed:
                kept.append(step)
                needed |= {step.one, step.other}
        return kept[::-1], results

    def _reduce(
        self,
        made: _Steps,
        first: int,
        last: int,
        known: frozenset[Place],
        found: Sorted | None,
        results: list[str],
    ) -> None:
        """Sort what windows have in common, which `found` has of `known`; then their halves."""
        windows = [
            {(plane, row + result, column) for plane, row, column in self.places}
            for result in range(first, last)
        ]
        common = frozenset.intersection(*map(frozenset, windows))
        more = made.sorted(common - known) if common - known else None
        if last - first == 1:
            results[first] = made.ranked(found, more)
            return
        joined = made.joined(found, more) if found and more else more or found
        middle = (first + last) // 2
        self._reduce(made, first, middle, common, joined, results)
        self._reduce(made, middle, last, common, joined, results)


class _Steps:
    """Comparisons, each of which is made once."""

    def __init__(self, count: int, rank: int) -> None:
        self.steps: list[Step] = []
        self._known: dict[tuple[str, str, str], str] = {}
        self._most_below, self._most_above = rank, count - 1 - rank

    def _step(self, kind: str, one: str, other: str) -> str:
        key = (kind, min(one, other), max(one, other))
        if key not in self._known:
            self._known[key] = f"s_{len(self.steps)}"
            self.steps.append(Step(self._known[key], kind, one, other))
        return self._known[key]

    def _merged(self, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Merge two sorted lists: those of even places, those of odd ones, then neighbours."""
        if not one or not other:
            return [*one, *other]
        if len(one) == len(other) == 1:
            return [self._step(kind, one[0], other[0]) for kind in ("LESSER", "GREATER")]
        even, odd = self._merged(one[::2], other[::2]), self._merged(one[1::2], other[1::2])
        pairs = list(zip(odd, even[1:], strict=False))
        merged = [even[0]]
        for pair in pairs:
            merged += [self._step(kind, *pair) for kind in ("LESSER", "GREATER")]
        return merged + odd[len(pairs) :] + even[1 + len(pairs) :]

    def joined(self, one: Sorted, other: Sorted) -> Sorted:
        """Merge two lists, and leave out what is too low or too high for the rank."""
        names = self._merged(one.names, other.names)
        below, above = one.below + other.below, one.above + other.above
        low = max(0, len(names) - 1 + above - self._most_above)
        high = min(len(names), self._most_below - below + 1)
        low = min(low, high)
        return Sorted(tuple(names[low:high]), below + low, above + len(names) - high)

    def _tree(self, lists: Sequence[Sorted]) -> Sorted:
        while len(lists) > 1:
            pairs = [lists[i : i + 2] for i in range(0, len(lists), 2)]
            lists = [self.joined(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
        return lists[0]

    def sorted(self, places: frozenset[Place]) -> Sorted:
        """Sort some places, in the same order wherever rows are the same."""
        rows: dict[int, dict[int, list[Sorted]]] = {}
        for plane, row, column in sorted(places):
            one = Sorted((f"v_{plane}_{row}_{column}",), 0, 0)
            rows.setdefault(row, {}).setdefault(plane, []).append(one)
        return self._tree(
            [self._tree([self._tree(one) for one in planes.values()]) for planes in rows.values()]
        )

    def ranked(self, found: Sorted | None, more: Sorted | None) -> str:
        """Return the value of the rank in two lists.

        Of k values below or at it, i are of one list and k - i of the other; the wrong i have a
        larger value at the end of one of the two.
        """
        if not (found and more):
            only = found or more
            assert only is not None
            return only.names[self._most_below - only.below]
        (one, *_), (other, *_) = found, more
        k = self._most_below - found.below - more.below + 1
        ends = []
        for i in range(max(0, k - len(other)), min(k, len(one)) + 1):
            pair = [*one[i - 1 : i], *other[k - i - 1 : k - i]] if i < k and i else None
            ends.append(self._step("GREATER", *pair) if pair else one[k - 1] if i else other[k - 1])
        return reduce(lambda a, b: self._step("LESSER", a, b), ends)


class Axes(NamedTuple):
    """A problem as kernels see it: planes of rows of places, which have `inner` values each."""

    planes: tuple[tuple[Window, int], ...]
    row: tuple[Window, int]
    column: tuple[Window, int]
    inner: int

    @property
    def length(self) -> int:
        """Values of a row."""
        return self.column[1] * self.inner

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of the window along each axis."""
        return tuple(window.size for window, _ in (*self.planes, self.row, self.column))


def _axes(problem: WindowProblem) -> Axes:
    """Return the axes of a problem, at least three: there may be some of one place."""
    axes, inner = list(problem.axes), problem.inner
    one = Window(-1, 1, 0, "constant")
    if inner > COLOURS:
        axes, inner = [*axes, (one, inner)], 1
    axes = [(one, 1)] * (3 - len(axes)) + axes
    return Axes(tuple(axes[:-2]), axes[-2], axes[-1], inner)


def _network(problem: WindowProblem, axes: Axes, results: int) -> Network:
    """Return how windows are reduced; windows of one row share none with the next one."""
    footprint = np.ones([window.size for window in problem.windows], bool)
    footprint.flat[list(problem.holes)] = False
    footprint = footprint.transpose(np.argsort([window.axis for window in problem.windows]))
    *planes, rows, columns = axes.sizes
    found = np.argwhere(footprint.reshape(math.prod(planes), rows, columns))
    rank = {"min": 0, "max": len(found) - 1}.get(problem.reduce, problem.rank)
    places = tuple((plane, row, column) for plane, row, column in found.tolist())
    return Network(places, rank, results if rows > 1 else 1)


class Networks(Algorithm[WindowProblem]):
    """Values of a rank by comparisons alone, straight from the array."""

    name = "networks"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("RESULTS", (2, 4, 8), "rows of results that an item computes side by side"),
            Parameter("WIDE", (1, 16, 32, 64, 128, 256), "values of a row for a group; CPUs: 1"),
            Parameter("WG_SIZE", (1, 64, 128, 256), "items in a group; CPUs: 1"),
        ),
        (
            positive("RESULTS"),
            power_of_two("WIDE"),
            power_of_two("WG_SIZE"),
            divides("WIDE", "WG_SIZE", "a group has whole rows of items"),
        ),
    )

    def default_config(self, problem: WindowProblem, device: Device) -> Config:
        """Return groups of one item for CPUs."""
        if device.kind == "cpu":
            return Config(RESULTS=4, WIDE=1, WG_SIZE=1)
        wg_size = largest_power(256, group_limit(device))
        # Rows of several planes take many registers, which minima do not pay for.
        several = len(problem.windows) > 2 and problem.reduce != "rank"
        few = bool(device.capabilities.item_registers) and problem.dtype.itemsize == 8
        results = 2 if few else 4 if several else 8
        return Config(RESULTS=results, WIDE=min(64, wg_size), WG_SIZE=wg_size)

    def supports(self, problem: WindowProblem, device: Device) -> str | None:
        """Need ranks of small windows, and room for what lies under some of them."""
        if problem.reduce not in ("min", "max", "rank"):
            return "it computes no sums"
        if problem.places > MOST_VALUES or math.prod(w.size for w in problem.windows) > MOST_ROWS:
            return f"windows of more than {MOST_VALUES} values take long to build"
        if _axes(problem).length >= LONGEST:
            return "rows are indexed with 32 bits"
        return lacks(device, problem.dtype, problem.result_type)

    def plan(self, problem: WindowProblem, config: Config, device: Device) -> Plan:
        """Plan one launch."""
        buffers = [problem.image, problem.result]
        if not problem.count:
            return Plan(tuple(buffers), ())
        axes, wg_size = _axes(problem), config.integer("WG_SIZE")
        network = _network(problem, axes, config.integer("RESULTS"))
        width = lanes(device, problem.dtype, wg_size)
        (_, h), length, inner = axes.row, axes.length, axes.inner
        planes = math.prod(n for _, n in axes.planes)
        arguments: dict[str, Argument] = {"image": "image", "result": "result"}
        if wg_size > 1:
            wide = min(config.integer("WIDE"), 1 << (length - 1).bit_length())
            band = network.results * (wg_size // wide)
            grid = (
                ceil_divide(length, wide),
                min(ceil_divide(h, band), CUDA_GROUPS),
                min(planes, CUDA_GROUPS),
            )
            arguments["shift"] = np.int32(wide.bit_length() - 1)
        else:
            groups = BUSY * device.compute_units
            parts = max(1, length // max(PART, 4 * width))
            bands = min(ceil_divide(h, network.results), ceil_divide(groups, parts * planes))
            band = network.results * ceil_divide(ceil_divide(h, bands), network.results)
            grid = (parts, ceil_divide(h, band), min(planes, groups))
            *lead, rows, columns = axes.sizes
            rows = math.prod(lead) * (rows + network.results - 1)
            room = rows * (width + (columns - 1) * inner)
            shape = (math.prod(grid) * room,)
            buffers.append(Buffer("margins", "scratch", shape, problem.dtype))
            arguments |= {"margins": "margins", "room": np.int32(room)}
        for d, (window, n) in enumerate((*axes.planes, axes.row, axes.column)):
            arguments |= {f"n_{d}": np.int32(n), f"before_{d}": np.int32(window.before)}
            arguments[f"mode_{d}"] = window.boundary
        arguments |= {"inner": np.int32(inner), "band": np.int32(band)}
        arguments |= {"planes": np.uint64(planes), **problem.outside(problem.dtype)}
        params = {
            "NUMBERS": Numbers.of(
                problem.dtype,
                problem.dtype,
                problem.result_type,
                width,
                problem.reduce,
            ),
            "NETWORK": network,
            "SIZES": axes.sizes,
            "COLOURS": COLOURS,
            "CONSTANT": wg_size > 1 and any(w.mode == "constant" for w in problem.windows),
            "SUB_GROUP": sub_group(device, MANY_REGISTERS),
            "WG_SIZE": wg_size,
        }
        size = (grid[0] * wg_size, *grid[1:])
        launch = Launch(TEMPLATE, "filter_network", params, size, (wg_size, 1, 1), arguments)
        return Plan(tuple(buffers), (launch,))
