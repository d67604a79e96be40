"""The first k keys of rows, by radix select and a sort of these few."""

from __future__ import annotations

from opencl_lab.device import Device
from opencl_lab.operations.select import topk
from opencl_lab.operations.select.joined import SORT_TEMPLATES, followed, plan_of
from opencl_lab.operations.select.problem import TopkProblem
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.solver import SORT_SOLVER
from opencl_lab.plan import Plan
from opencl_lab.space import Config

__all__ = ["RadixSelect"]


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
        return followed(
            selected,
            plan_of(SORT_SOLVER, order, device),
            {"keys": "values", "values": "places"},
            {"sorted": ("values", problem.dtype), "sorted_values": ("places", topk.LONG)},
        )
