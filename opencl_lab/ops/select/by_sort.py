"""Algorithms that sort, with further launches before or after the sort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.by_kind import ByKind
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.select.unique import HEADS
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import gather
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.merge_cpu import MergePathCpu
from opencl_lab.ops.sort.merge_gpu import MergePathGpu
from opencl_lab.ops.sort.odd_even_merge import OddEvenMerge
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.quicksort_cpu import QuicksortCpu
from opencl_lab.ops.sort.radix_cpu import RadixCpu
from opencl_lab.ops.sort.radix_gpu import RadixGpu
from opencl_lab.ops.sort.solver import SORT_SOLVER

SORTS: tuple[type[Algorithm[SortProblem]], ...] = (
    RadixCpu,
    RadixGpu,
    MergePathCpu,
    MergePathGpu,
    OddEvenMerge,
    QuicksortCpu,
)
SORT_TEMPLATES = tuple(name for sort in SORTS for name in sort.templates)
"""Templates of a sort by whichever algorithm is the fastest."""
HEADS_TEMPLATES = (gather.TEMPLATE, *HEADS.templates)


def _followed(
    first: Plan,
    second: Plan,
    handed: Mapping[str, str],
    results: Mapping[str, tuple[str, np.dtype[Any]]],
) -> Plan:
    """Return one plan with the launches of `first`, then those of `second`.

    The inputs of `first` are those of the new plan. `handed` maps inputs of `second` to the buffers
    of `first` that they are, and `results` maps outputs of `second` to their names and types in the
    new plan.
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
    """Sort positions by their keys, and take the first `k`."""

    name = "sort"
    templates = (*SORT_TEMPLATES, gather.TEMPLATE)
    space = SearchSpace(())

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return an empty configuration: the sort has its own."""
        return Config()

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort and one more."""
        n, k, rows, dtype = problem.n, problem.k, problem.rows, problem.dtype
        first = GatherProblem(n, rows, dtype.itemsize, k, places=True)
        sorting = SORT_SOLVER.plan(problem.order, device)
        if not rows * k:
            sorting = replace(sorting, launches=())
        return _followed(
            sorting,
            GATHER.plan(first, device),
            {"source": "keys", "order": "sorted_values"},
            {"target": ("values", dtype), "places": ("places", np.dtype(np.int64))},
        )


class RadixSelect(topk.Selection):
    """Select the first `k` keys, then sort them with their positions."""

    templates = (topk.TEMPLATE, *SORT_TEMPLATES)

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the selection, and those of the sort unless `k` is 1."""
        selected = super().plan(problem, config, device)
        k, rows = problem.k, problem.rows
        if k < 2 or not rows:
            return selected
        return _followed(
            selected,
            SORT_SOLVER.plan(problem.selected, device),
            {"keys": "values", "values": "places"},
            {"sorted": ("values", problem.dtype), "sorted_values": ("places", topk.LONG)},
        )


class _ByRuns(Algorithm[UniqueProblem]):
    """Sort, then take the first key of each run of equal ones.

    The parameters are those of the sort, which takes nearly all of the time.
    """

    kind: ClassVar[str] = "gpu"
    """Of the devices that the sort is for, where that makes a difference."""

    @property
    def sort(self) -> Algorithm[SortProblem]:
        """The sort of the same name."""
        return SORT_SOLVER.algorithm(self.name).on(self.kind)

    def supports(self, problem: UniqueProblem, device: Device) -> str | None:
        """Need what the sort and the launches after it need."""
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

        Where positions of keys are wanted, these are sorted, and the keys gathered afterwards.
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
        # The sort has one row of keys; here the array has one dimension.
        flat = (replace(b, shape=(problem.n,)) if b.role == "in" else b for b in plan.buffers)
        return replace(plan, buffers=tuple(flat))


class ByRadixCpu(_ByRuns):
    """By the radix sort for CPUs."""

    name = "radix"
    kind = "cpu"
    templates: ClassVar[tuple[str, ...]] = (*RadixCpu.templates, *HEADS_TEMPLATES)
    space = RadixCpu.space


class ByRadixGpu(_ByRuns):
    """By the radix sort for GPUs."""

    name = "radix"
    templates: ClassVar[tuple[str, ...]] = (*RadixGpu.templates, *HEADS_TEMPLATES)
    space = RadixGpu.space


class ByRadix(ByKind[UniqueProblem]):
    """By a radix sort."""

    name = "radix"
    cpu = "opencl_lab.ops.select.by_sort:ByRadixCpu"
    gpu = "opencl_lab.ops.select.by_sort:ByRadixGpu"


class ByMergePathCpu(_ByRuns):
    """By the merge sort for CPUs."""

    name = "merge-path"
    kind = "cpu"
    templates: ClassVar[tuple[str, ...]] = (*MergePathCpu.templates, *HEADS_TEMPLATES)
    space = MergePathCpu.space


class ByMergePathGpu(_ByRuns):
    """By the merge sort for GPUs."""

    name = "merge-path"
    templates: ClassVar[tuple[str, ...]] = (*MergePathGpu.templates, *HEADS_TEMPLATES)
    space = MergePathGpu.space


class ByMergePath(ByKind[UniqueProblem]):
    """By a merge sort along merge paths."""

    name = "merge-path"
    cpu = "opencl_lab.ops.select.by_sort:ByMergePathCpu"
    gpu = "opencl_lab.ops.select.by_sort:ByMergePathGpu"


class ByOddEvenMerge(_ByRuns):
    """By a merge sort in which every element finds its position by binary search."""

    name = "odd-even-merge"
    templates: ClassVar[tuple[str, ...]] = (*OddEvenMerge.templates, *HEADS_TEMPLATES)
    space = OddEvenMerge.space


class ByQuicksort(_ByRuns):
    """By a quicksort of one thread, on CPUs."""

    name = "quicksort"
    templates: ClassVar[tuple[str, ...]] = (*QuicksortCpu.templates, *HEADS_TEMPLATES)
    space = QuicksortCpu.space
