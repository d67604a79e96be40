"""Algorithms that are a sort, and what comes before or after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.select import topk, unique
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.select.unique import HEADS
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import gather
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.merge_path import MergePath
from opencl_lab.ops.sort.odd_even_merge import OddEvenMerge
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.radix import Radix
from opencl_lab.ops.sort.solver import SORT_SOLVER

SORT_TEMPLATES = tuple(
    dict.fromkeys(name for algorithm in SORT_SOLVER.algorithms for name in algorithm.templates)
)
"""Templates of a sort by whichever algorithm is the fastest."""
HEADS_TEMPLATES = (gather.TEMPLATE, unique.TEMPLATE)


def _followed(
    first: Plan,
    second: Plan,
    handed: Mapping[str, str],
    results: Mapping[str, tuple[str, np.dtype[Any]]],
) -> Plan:
    """Return the launches of both, one after the other.

    The inputs of the first are those of the whole. `handed` says which buffer of the first an input
    of the second is, and `results` the names and types that outputs of the second have in the
    whole.
    """
    inner = {b.name: b.name if b.role == "in" else f"first_{b.name}" for b in first.buffers}
    outer = {b.name: f"then_{b.name}" for b in second.buffers}
    outer |= {name: result for name, (result, _) in results.items()}
    outer |= {name: inner[given] for name, given in handed.items()}
    types = {name: dtype for name, (_, dtype) in results.items()}
    buffers = [
        replace(b, name=inner[b.name], role="scratch" if b.role == "out" else b.role)
        for b in first.buffers
    ]
    buffers += [
        replace(b, name=outer[b.name], dtype=types.get(b.name, b.dtype))
        for b in second.buffers
        if b.name not in handed
    ]
    launches = [launch.renamed(inner) for launch in first.launches]
    launches += [launch.renamed(outer) for launch in second.launches]
    return Plan(tuple(buffers), tuple(launches))


class BySort(Algorithm[TopkProblem]):
    """Sort places by their keys, and take the first."""

    name = "sort"
    templates = (*SORT_TEMPLATES, gather.TEMPLATE)
    space = SearchSpace(())

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return what leaves nothing to choose: the sort has its own configuration."""
        return Config()

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort and one more."""
        n, k, rows, dtype = problem.n, problem.k, problem.rows, problem.dtype
        order = SortProblem(n, dtype, rows, problem.largest, indices=True)
        first = GatherProblem(n, rows, dtype.itemsize, k, places=True)
        sorting = SORT_SOLVER.plan(order, device)
        if not rows * k:
            sorting = replace(sorting, launches=())
        return _followed(
            sorting,
            GATHER.plan(first, device),
            {"source": "keys", "order": "sorted_values"},
            {"target": ("values", dtype), "places": ("places", np.dtype(np.int64))},
        )


class RadixSelect(topk.Selection):
    """Select the keys, then sort them with their places."""

    templates = (topk.TEMPLATE, *SORT_TEMPLATES)

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the selection, and those of the sort unless there is one key."""
        selected = super().plan(problem, config, device)
        k, rows = problem.k, problem.rows
        if k < 2 or not rows:
            return selected
        order = SortProblem(k, problem.dtype, rows, problem.largest, value_bytes=topk.LONG.itemsize)
        return _followed(
            selected,
            SORT_SOLVER.plan(order, device),
            {"keys": "values", "values": "places"},
            {"sorted": ("values", problem.dtype), "sorted_values": ("places", topk.LONG)},
        )


class _ByRuns(Algorithm[UniqueProblem]):
    """Sort, then take the first key of each run of equal ones.

    The parameters are those of the sort, which takes nearly all of the time.
    """

    @property
    def sort(self) -> Algorithm[SortProblem]:
        """The sort of the same name."""
        return SORT_SOLVER.algorithm(self.name)

    def supports(self, problem: UniqueProblem, device: Device) -> str | None:
        """Need what both need."""
        reason = self.sort.supports(problem.sorting, device)
        return reason or HEADS.supports(problem, device)

    def too_slow(self, problem: UniqueProblem) -> str | None:
        """Return what the sort says."""
        return self.sort.too_slow(problem.sorting)

    def default_config(self, problem: UniqueProblem, device: Device) -> Config:
        """Return the configuration of the sort, tuned or built in."""
        return self.sort.configure(problem.sorting, device)

    def search_space(self, problem: UniqueProblem, device: Device) -> SearchSpace:
        """Return what a tuner tries for the sort."""
        return self.sort.search_space(problem.sorting, device)

    def plan(self, problem: UniqueProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort, and two to four more.

        Where places of keys are asked for, these are sorted, and then the keys are gathered.
        """
        found = HEADS.plan(problem, HEADS.default_config(problem, device), device)
        outputs = {buffer.name: (buffer.name, buffer.dtype) for buffer in found.with_role("out")}
        sorting = self.sort.plan(problem.sorting, config, device)
        handed = {"keys": "sorted"}
        if problem.placed:
            gathering = GatherProblem(problem.n, 1, problem.dtype.itemsize, problem.n)
            sorting = _followed(
                sorting,
                GATHER.plan(gathering, device),
                {"source": "keys", "order": "sorted_values"},
                {"target": ("sorted", problem.dtype)},
            )
            handed["order"] = "first_sorted_values"
        plan = _followed(sorting, found, handed, outputs)
        # What is one row to the sort has one dimension here.
        flat = (replace(b, shape=(problem.n,)) if b.role == "in" else b for b in plan.buffers)
        return replace(plan, buffers=tuple(flat))


class ByRadix(_ByRuns):
    """By a radix sort."""

    name = "radix"
    templates: ClassVar[tuple[str, ...]] = (*Radix.templates, *HEADS_TEMPLATES)
    space = Radix.space


class ByMergePath(_ByRuns):
    """By merging along merge paths."""

    name = "merge-path"
    templates: ClassVar[tuple[str, ...]] = (*MergePath.templates, *HEADS_TEMPLATES)
    space = MergePath.space


class ByOddEvenMerge(_ByRuns):
    """By a network of comparisons."""

    name = "odd-even-merge"
    templates: ClassVar[tuple[str, ...]] = (*OddEvenMerge.templates, *HEADS_TEMPLATES)
    space = OddEvenMerge.space
