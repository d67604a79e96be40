"""The first k keys of rows, by radix select."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import index_type, is_one_thread, lacks_groups
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.slices import PARAMETERS, POWER, check_group, largest_group, slices_of
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import SortElement

TEMPLATE = "select/radix_select.cl.mako"
RANK_TEMPLATE = "select/radix_rank.cl.mako"
UINT, LONG = np.dtype(np.uint32), np.dtype(np.int64)
WHOLE = 1 << 14
"""Most keys of a row that one group reads alone: from the second read on, from a cache."""
WHOLE_OF_MANY = 1 << 17
"""The same where there are rows for all units."""
SHORT = 1 << 12
"""Most keys of a row for which shorter digits pay, though they need another pass."""
SLICED = 1 << 17
"""Most keys of a row for which GPUs find the first k of each slice, and then the first k of these.

That is three launches with the sort, where passes take a launch per digit and two more.
"""
SLICE = 1 << 11
"""About how many keys such a slice has."""
MOST_OF_SLICES = 1 << 13
"""Most keys that all slices of a row may find together, as one group reads them."""
MOST_RANKED = 128
"""Most keys that are ranked by comparing each with all others: 128 take 2 us."""
RANKED_TOGETHER = 64
"""Neighbours that are compared with the k-th key together: four vectors of keys of four bytes."""
LONG_DIGIT = 11
"""Bits of a digit of longer rows."""
FEW_SHARE = 4
"""The remaining keys of a row are copied once they are at most this fraction of the row, 1 / 4."""


class UnsortedSelect(Algorithm[TopkProblem]):
    """Radix select in one launch or two; for long rows, in one launch per digit and one more.

    The keys found are in the order of the row: `RadixSelect` sorts them.
    """

    name = "radix-select"
    templates: ClassVar[tuple[str, ...]] = (TEMPLATE,)
    space = SearchSpace(
        (*PARAMETERS, Parameter("DIGIT_BITS", (4, 6, 8, 11), "bits of a digit")),
        (
            *POWER,
            Constraint(lambda c: 1 <= c.integer("DIGIT_BITS") <= 11, "DIGIT_BITS must be 1 to 11"),
        ),
    )

    def supports(self, problem: TopkProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs."""
        return lacks_groups(device)

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return groups of one item and long digits for CPUs, unless rows are short."""
        if device.kind == "cpu":
            return Config(
                WG_SIZE=1, ITEM_KEYS=64, DIGIT_BITS=LONG_DIGIT if problem.n > SHORT else 8
            )
        return Config(WG_SIZE=largest_group(device), ITEM_KEYS=4, DIGIT_BITS=8)

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan one launch for rows that a group reads alone, two for a few slices, else passes."""
        check_group(config, device)
        if not problem.rows * problem.k:
            return Plan(given(problem), ())
        return _Launches(problem, config, device).plan()


def element_of(problem: TopkProblem) -> SortElement:
    """Return what keys are, in their order."""
    return SortElement.of(problem.dtype, descending=problem.largest, nan_first=problem.largest)


def given(problem: TopkProblem) -> tuple[Buffer, ...]:
    """Return the buffers of the user."""
    n, k, rows = problem.n, problem.k, problem.rows
    return (
        Buffer("keys", "in", (rows, n), problem.dtype),
        Buffer("values", "out", (rows, k), problem.dtype),
        Buffer("places", "out", (rows, k), LONG),
    )


class _Launches:
    """The launches of one form: whole rows, slices searched like rows, or passes over slices."""

    def __init__(self, problem: TopkProblem, config: Config, device: Device) -> None:
        self.problem, self.config, self.device = problem, config, device
        self.whole, self.alike = is_whole(problem, device), alike_slices(problem, device)
        self.index = index_type(problem.n)
        self.wg_size = config.integer("WG_SIZE")
        self.radix = 1 << config.integer("DIGIT_BITS")
        self.params: dict[str, Any] = {
            "ELEMENT": element_of(problem),
            "FORM": "whole" if self.whole else "twice" if self.alike else "passes",
            "WIDE": self.index is np.uint64,
            **config,
            "PTX": device.capabilities.inline_ptx,
        }

    def plan(self) -> Plan:
        """Return the plan."""
        if self.whole:
            results = named("values", "places")
            return Plan(given(self.problem), (self._select(1, {}, results, self.problem.n),))
        return self._of_alike_slices() if self.alike else self._of_passes()

    def _launch(self, kernel: str, slices: int, arguments: Mapping[str, Argument]) -> Launch:
        """Return a launch with one work-group for each slice of each row."""
        wg_size = self.wg_size
        sums = 4 * (32 if self.params["PTX"] else 2 * wg_size)
        local = 4 * self.radix * (2 if wg_size == 1 else 1) + sums + 16 * wg_size + 64
        groups = (self.problem.rows * slices * wg_size,)
        return Launch(TEMPLATE, kernel, self.params, groups, (wg_size,), arguments, local)

    def _select(
        self, slices: int, few: dict[str, Argument], results: dict[str, Argument], n: int
    ) -> Launch:
        """Return a launch that selects among the keys of rows, or among the few found in slices."""
        sizes: dict[str, Argument] = {"n": self.index(n), "k": self.index(self.problem.k)}
        where = {**(few or named("keys")), **results, **sizes, "slices": np.uint32(slices)}
        return self._launch("select_few" if few else "select_slices", slices, where)

    def _of_alike_slices(self) -> Plan:
        """Return two launches: slices are searched like rows, then the keys found in them."""
        problem, found = self.problem, self.alike * self.problem.k
        buffers = (
            Buffer("few_keys", "scratch", (problem.rows, found), problem.dtype),
            Buffer("few_places", "scratch", (problem.rows, found), LONG),
        )
        few: dict[str, Argument] = {"values": "few_keys", "places": "few_places"}
        of_few: dict[str, Argument] = {"keys": "few_keys", "few_places": "few_places"}
        launches = (
            self._select(self.alike, {}, few, problem.n),
            self._select(1, of_few, named("values", "places"), found),
        )
        return Plan((*given(problem), *buffers), launches)

    def _of_passes(self) -> Plan:
        """Return a launch for each digit, and one that gathers the keys."""
        problem, n, rows = self.problem, self.problem.n, self.problem.rows
        tile = self.wg_size * self.config.integer("ITEM_KEYS")
        slices = slices_of(n, rows, tile, self.device)
        digits = ceil_divide(8 * problem.dtype.itemsize, self.config.integer("DIGIT_BITS"))
        capacity = n // FEW_SHARE
        words = digits * self.radix * (2 if self.params["WIDE"] else 1)
        buffers = (
            Buffer("few_keys", "scratch", (rows, capacity), problem.dtype),
            Buffer("few_places", "scratch", (rows, capacity), LONG),
            Buffer("state", "scratch", (rows, digits, 4), np.dtype(np.uint64)),
            Buffer("table", "scratch", (rows, 2, self.radix + 1, slices), UINT),
            Buffer("histogram", "zeros", (rows, words), UINT),
            Buffer("leaving", "zeros", (rows,), UINT),
        )
        between = named("keys", "few_keys", "few_places", "state", "table")
        sizes: dict[str, Argument] = {
            "n": self.index(n),
            "k": self.index(problem.k),
            "slices": np.uint32(slices),
            "capacity": self.index(capacity),
        }
        launches = []
        for number in range(digits):
            where = {**between, **named("histogram"), **sizes, "pass": np.uint32(number)}
            launches.append(self._launch("narrow" if number else "narrow_first", slices, where))
        results = named("values", "places", "histogram", "leaving")
        last = {**between, **results, **sizes, "pass": np.uint32(digits)}
        launches.append(self._launch("gather", slices, last))
        return Plan((*given(problem), *buffers), tuple(launches))


def is_whole(problem: TopkProblem, device: Device) -> bool:
    """Return whether a group reads a row alone."""
    busy = is_one_thread(device) or problem.rows >= 2 * device.compute_units
    return problem.n <= WHOLE or (problem.n <= WHOLE_OF_MANY and busy)


def alike_slices(problem: TopkProblem, device: Device) -> int:
    """Return into how many slices a row is cut that are searched like rows; 0: it is not cut."""
    slices = ceil_divide(problem.n, SLICE)
    fits = problem.n <= SLICED and slices * problem.k <= MOST_OF_SLICES
    return slices if device.kind != "cpu" and fits else 0


class RadixRank(Algorithm[TopkProblem]):
    """Radix select of few keys, which then are ranked: one launch, a thread for each row."""

    name = "radix-rank"
    templates: ClassVar[tuple[str, ...]] = (RANK_TEMPLATE,)
    space = SearchSpace(())

    def supports(self, problem: TopkProblem, device: Device) -> str | None:
        """Need a CPU, and few keys of rows that stay in a cache."""
        if device.kind != "cpu":
            return "it is for CPUs, as one work-item selects from a row"
        if problem.k > MOST_RANKED or problem.n > WHOLE_OF_MANY:
            return f"it is for at most {MOST_RANKED} keys, of rows of at most {WHOLE_OF_MANY}"
        return None

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return an empty configuration."""
        return Config()

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan one launch."""
        n, k, rows = problem.n, problem.k, problem.rows
        if not rows * k:
            return Plan(given(problem), ())
        params = {
            "ELEMENT": element_of(problem),
            "MOST_RANKED": MOST_RANKED,
            "ITEM_KEYS": RANKED_TOGETHER,
        }
        arguments: dict[str, Argument] = {
            **named("keys", "values", "places"),
            "n": np.uint32(n),
            "k": np.uint32(k),
        }
        launch = Launch(RANK_TEMPLATE, "radix_rank", params, (rows,), (1,), arguments)
        return Plan(given(problem), (launch,))


SELECTION = UnsortedSelect()
