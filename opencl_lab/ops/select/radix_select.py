"""The first k keys of rows, by radix select and a sort of these few."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.joined import SORT_TEMPLATES, followed
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

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
            SORT_SOLVER.plan(order, device),
            {"keys": "values", "values": "places"},
            {"sorted": ("values", problem.dtype), "sorted_values": ("places", topk.LONG)},
        )
