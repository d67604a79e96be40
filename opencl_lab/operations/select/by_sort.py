"""The first k keys of rows, by a sort of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from opencl_lab.device import Device
from opencl_lab.operations.select.problem import TopkProblem
from opencl_lab.operations.sort import gather
from opencl_lab.operations.sort.gather import GATHER, GatherProblem
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.solver import SORT_SOLVER
from opencl_lab.plan import Plan
from opencl_lab.solver import Algorithm, Problem, Solver
from opencl_lab.space import Config, SearchSpace

__all__ = ["BySort"]

P = TypeVar("P", bound=Problem)
LAST = {"source": "keys", "order": "sorted_values", "target": "values", "places": "places"}
"""What the buffers of the last launch are here."""


class BySort(Algorithm[TopkProblem]):
    """Sort places by their keys, and take the first.

    What it gives is in order.
    """

    name = "sort"
    templates = (gather.TEMPLATE,)
    space = SearchSpace(())

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return what leaves nothing to choose: the sort has its own configuration."""
        return Config()

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort and one more."""
        n, k, rows = problem.n, problem.k, problem.rows
        order = SortProblem(n, problem.dtype, rows, problem.largest, indices=True)
        first = GatherProblem(n, rows, problem.dtype.itemsize, k, places=True)
        sorting = _plan_of(SORT_SOLVER, order, device)
        taking = _plan_of(GATHER, first, device)
        if not rows * k:
            sorting = replace(sorting, launches=())
        # Of the sort all but the keys is in between.
        inner = {b.name: b.name if b.name == "keys" else f"sort_{b.name}" for b in sorting.buffers}
        outer = {**LAST, "order": inner["sorted_values"]}
        buffers = [
            replace(b, name=inner[b.name], role="scratch" if b.role == "out" else b.role)
            for b in sorting.buffers
        ]
        values, places = taking.with_role("out")
        buffers += [replace(values, name="values", dtype=problem.dtype), places]
        launches = [
            replace(
                launch,
                arguments={
                    name: names[given] if isinstance(given, str) else given
                    for name, given in launch.arguments.items()
                },
            )
            for part, names in ((sorting, inner), (taking, outer))
            for launch in part.launches
        ]
        return Plan(tuple(buffers), tuple(launches))


def _plan_of(solver: Solver[P], problem: P, device: Device) -> Plan:
    chosen = solver.choose(problem, device)
    return chosen.plan(problem, chosen.configure(problem, device, None), device)
