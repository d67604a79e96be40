"""Each key once, by the algorithms of a sort."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.select import unique
from opencl_lab.ops.select.joined import followed
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import gather
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.merge_path import MergePath
from opencl_lab.ops.sort.odd_even_merge import OddEvenMerge
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.radix import Radix
from opencl_lab.ops.sort.solver import SORT_SOLVER

__all__ = ["ByMergePath", "ByOddEvenMerge", "ByRadix"]

TEMPLATES = (gather.TEMPLATE, unique.TEMPLATE)


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
        return reason or unique.HEADS.supports(problem, device)

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
        heads = unique.HEADS
        found = heads.plan(problem, heads.default_config(problem, device), device)
        outputs = {buffer.name: (buffer.name, buffer.dtype) for buffer in found.with_role("out")}
        sorting = self.sort.plan(problem.sorting, config, device)
        handed = {"keys": "sorted"}
        if problem.placed:
            gathering = GatherProblem(problem.n, 1, problem.dtype.itemsize, problem.n)
            sorting = followed(
                sorting,
                GATHER.plan(gathering, device),
                {"source": "keys", "order": "sorted_values"},
                {"target": ("sorted", problem.dtype)},
            )
            handed["order"] = "first_sorted_values"
        plan = followed(sorting, found, handed, outputs)
        # What is one row to the sort has one dimension here.
        flat = (replace(b, shape=(problem.n,)) if b.role == "in" else b for b in plan.buffers)
        return replace(plan, buffers=tuple(flat))


class ByRadix(_ByRuns):
    """By a radix sort."""

    name = "radix"
    templates: ClassVar[tuple[str, ...]] = (*Radix.templates, *TEMPLATES)
    space = Radix.space


class ByMergePath(_ByRuns):
    """By merging along merge paths."""

    name = "merge-path"
    templates: ClassVar[tuple[str, ...]] = (*MergePath.templates, *TEMPLATES)
    space = MergePath.space


class ByOddEvenMerge(_ByRuns):
    """By a network of comparisons."""

    name = "odd-even-merge"
    templates: ClassVar[tuple[str, ...]] = (*OddEvenMerge.templates, *TEMPLATES)
    space = OddEvenMerge.space
