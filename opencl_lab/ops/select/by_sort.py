"""The first k keys of rows, by a sort of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.select.joined import SORT_TEMPLATES, followed
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import gather
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

__all__ = ["BySort"]


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
        return followed(
            sorting,
            GATHER.plan(first, device),
            {"source": "keys", "order": "sorted_values"},
            {"target": ("values", dtype), "places": ("places", np.dtype(np.int64))},
        )
