"""What selects among keys, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.estimates import FURTHER_LAUNCH_US, on_threads
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.select.slices import is_one_thread
from opencl_lab.ops.solver import AUTO, Registry, Solver
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

SORTED_SHARE, SORTED_SHARE_LONG, OTHER_SORTED_SHARE = 8, 4, 2
"""If one of so many keys is wanted, or more, a sort of all takes less time: on CPUs, there for keys
of eight bytes, and elsewhere. Of 50,000 float32 half take two cores of a Xeon 0.4 ms, not 0.8."""
SORTED_ROW = 64
"""Keys of a row up to which CPUs sort it: 1000 rows of 20 take 0.2 ms, not 0.3."""

# Nanoseconds of a thread on an EPYC 9005 for a key that is looked at, of up to 4 bytes and of 8;
# for a row; for a comparison of ranks; and for one of the sorted keys of `unique`.
KEY_NS = 1.2, 2.0
ROW_NS = 700.0
RANK_NS = 0.2
HEAD_NS = 1.2


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
        if is_one_thread(device) and self._is_ranked(problem):
            return ("radix-rank",)
        return ("sort",) if self._is_sorted(problem, device) else self.registry

    def serial_us(self, problem: TopkProblem) -> float:
        """Return the microseconds of one thread: those of passes, and of the sort."""
        if self._is_ranked(problem):
            each = ROW_NS + KEY_NS[1] * problem.n + RANK_NS * problem.k**2
            return 1e-3 * problem.rows * each
        return self._passes_us(problem) + SORT_SOLVER.serial_us(self._sorting(problem))

    def parallel_us(self, problem: TopkProblem, units: int) -> float:
        """Return the same of all threads, with the launches after the first one."""
        passes = on_threads(self._passes_us(problem), units)
        further = 1
        if problem.n > topk.WHOLE and not self._is_sorted_by_cpus(problem):
            further += ceil_divide(8 * problem.dtype.itemsize, topk.LONG_DIGIT)
        sort = SORT_SOLVER.parallel_us(self._sorting(problem), units)
        return passes + sort + further * FURTHER_LAUNCH_US

    def _passes_us(self, problem: TopkProblem) -> float:
        if self._is_sorted_by_cpus(problem):
            return 0.0
        each = ROW_NS + KEY_NS[problem.dtype.itemsize == 8] * problem.n
        return 1e-3 * problem.rows * each

    def _sorting(self, problem: TopkProblem) -> SortProblem:
        """Return the sort of all keys or of those that are selected."""
        if self._is_sorted_by_cpus(problem):
            return problem.order
        return problem.selected

    @staticmethod
    def _is_ranked(problem: TopkProblem) -> bool:
        few = problem.rows * problem.n <= topk.SHORT
        return few and problem.k <= topk.MOST_RANKED

    @staticmethod
    def _is_sorted_by_cpus(problem: TopkProblem) -> bool:
        share = SORTED_SHARE_LONG if problem.dtype.itemsize == 8 else SORTED_SHARE
        return problem.n <= SORTED_ROW or share * problem.k >= problem.n

    @classmethod
    def _is_sorted(cls, problem: TopkProblem, device: Device) -> bool:
        if device.kind == "cpu":
            return cls._is_sorted_by_cpus(problem)
        if OTHER_SORTED_SHARE * problem.k >= problem.n:
            return True
        # Here time is that of launches, and a pass takes longer than a step of a sort.
        few = problem.n * problem.rows <= topk.SLICED and not topk.is_whole(problem, device)
        return few and not topk.alike_slices(problem, device)


class Unique(Solver[UniqueProblem]):
    """Each key once, in order: a sort, and the heads of runs of equal keys."""

    name = "unique"
    registry: ClassVar[Registry] = {
        "radix": "opencl_lab.ops.select.by_sort:ByRadix",
        "merge-path": "opencl_lab.ops.select.by_sort:ByMergePath",
        "odd-even-merge": "opencl_lab.ops.select.by_sort:ByOddEvenMerge",
        "quicksort": "opencl_lab.ops.select.by_sort:ByQuicksort",
    }

    def ranked(self, problem: UniqueProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the algorithms of the sort, in its order."""
        return SORT_SOLVER.ranked(problem.sorting, device)

    def serial_us(self, problem: UniqueProblem) -> float:
        """Return the microseconds of one thread: those of the sort, and of a pass."""
        return SORT_SOLVER.serial_us(problem.sorting) + 1e-3 * HEAD_NS * problem.n

    def parallel_us(self, problem: UniqueProblem, units: int) -> float:
        """Return the same of all threads, with two or three more launches."""
        heads = on_threads(1e-3 * HEAD_NS * problem.n, units)
        sort = SORT_SOLVER.parallel_us(problem.sorting, units)
        return sort + heads + 2 * FURTHER_LAUNCH_US


TOPK_SOLVER = Topk()
UNIQUE_SOLVER = Unique()
