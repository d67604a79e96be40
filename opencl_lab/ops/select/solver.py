"""What selects among keys, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver
from opencl_lab.ops.sort.solver import SORT_SOLVER

SORTED_SHARE, SORTED_SHARE_LONG, OTHER_SORTED_SHARE = 8, 4, 2
"""If one of so many keys is wanted, or more, a sort of all takes less time: on CPUs, there for keys
of eight bytes, and elsewhere. Of 50,000 float32 half take two cores of a Xeon 0.4 ms, not 0.8."""
SORTED_ROW = 64
"""Keys of a row up to which CPUs sort it: 1000 rows of 20 take 0.2 ms, not 0.3."""


class Topk(Solver[TopkProblem]):
    """The first k keys of rows, in order, and where they are."""

    name = "topk"
    registry: ClassVar[Registry] = {
        "radix-select": "opencl_lab.ops.select.by_sort:RadixSelect",
        "sort": "opencl_lab.ops.select.by_sort:BySort",
        "radix-rank": "opencl_lab.ops.select.topk:RadixRank",
    }

    def ranked(self, problem: TopkProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return ``sort`` alone where that takes less time, and one launch for one thread."""
        if device.compute_units == 1 and problem.n <= topk.WHOLE and problem.k <= topk.MOST_RANKED:
            return ("radix-rank",)
        return ("sort",) if self._is_sorted(problem, device) else self.registry

    @staticmethod
    def _is_sorted(problem: TopkProblem, device: Device) -> bool:
        n, long = problem.n, problem.dtype.itemsize == 8
        if device.kind == "cpu":
            share = SORTED_SHARE_LONG if long else SORTED_SHARE
            return n <= SORTED_ROW or share * problem.k >= n
        if OTHER_SORTED_SHARE * problem.k >= n:
            return True
        # Here time is that of launches, and a pass takes longer than a step of a sort.
        few = n * problem.rows <= topk.SLICED and not topk.is_whole(problem, device)
        return few and not topk.alike_slices(problem, device)


class Unique(Solver[UniqueProblem]):
    """Each key once, in order: a sort, and the heads of runs of equal keys."""

    name = "unique"
    registry: ClassVar[Registry] = {
        "radix": "opencl_lab.ops.select.by_sort:ByRadix",
        "merge-path": "opencl_lab.ops.select.by_sort:ByMergePath",
        "odd-even-merge": "opencl_lab.ops.select.by_sort:ByOddEvenMerge",
    }

    def ranked(self, problem: UniqueProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the algorithms of the sort, in its order."""
        return SORT_SOLVER.ranked(problem.sorting, device)


TOPK_SOLVER = Topk()
UNIQUE_SOLVER = Unique()
