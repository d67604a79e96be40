"""What selects among keys, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_one_thread
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.estimates import FURTHER_LAUNCH_US, on_threads
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver
from opencl_lab.ops.sort.solver import SORT_SOLVER

CPU_SORTS_EIGHTH, CPU_SORTS_QUARTER, GPU_SORTS_HALF = 8, 4, 2
"""The share of all keys from which to sort all takes less time than to select: an eighth on CPUs, a
quarter there for keys of eight bytes, and half on other devices. On two cores of a Xeon the first
half of 50,000 float32 takes 0.4 ms by a sort, and 0.8 by a selection."""
SORTED_ROW = 64
"""Keys of a row up to which CPUs sort it: 1000 rows of 20 take 0.2 ms, not 0.3."""
SAMPLED, SAMPLED_K = 1 << 13, 16
"""Keys of a row for each wanted one, of so many at least, from which a limit from samples pays: on
an H200 100 of 10^6, 10^7 and 2^26 float32 take 35, 42 and 106 us, not 68, 94 and 333."""

# Estimated times on one thread of a CPU: see `opencl_lab.ops.estimates`.
KEY_NS = 1.2, 2.0
"""To look at a key of up to 4 bytes, and of 8."""
ROW_NS = 700.0
"""A row, besides its keys."""
RANK_NS = 0.2
"""To compare two keys for their ranks."""
HEAD_NS = 1.2
"""To compare a sorted key with the one before it."""


class TopkSolver(Solver[TopkProblem]):
    """The first k keys of rows, in order, and where they are."""

    name = "topk"
    registry: ClassVar[Registry] = {
        "radix-select": "opencl_lab.ops.select.by_sort:RadixSelect",
        "sort": "opencl_lab.ops.select.by_sort:BySort",
        "radix-rank": "opencl_lab.ops.select.topk:RadixRank",
        "sample-select": "opencl_lab.ops.select.sampled:SampleSelect",
    }

    def ranked(self, problem: TopkProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return ``sort`` alone where that takes less time, and one launch for one thread."""
        if is_one_thread(device) and self._is_ranked(problem):
            return ("radix-rank",)
        if self._is_sorted(problem, device):
            return ("sort",)
        few = device.capabilities.inline_ptx and problem.n >= SAMPLED * max(problem.k, SAMPLED_K)
        return ("sample-select", "radix-select") if few else self.registry

    def serial_us(self, problem: TopkProblem) -> float:
        """Return the estimated microseconds on one thread."""
        if self._is_ranked(problem):
            each = ROW_NS + KEY_NS[1] * problem.n + RANK_NS * problem.k**2
            return 1e-3 * problem.rows * each
        if self._is_sorted_by_cpus(problem):
            return SORT_SOLVER.serial_us(problem.order)
        return _selected_us(problem) + SORT_SOLVER.serial_us(problem.selected)

    def parallel_us(self, problem: TopkProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        if self._is_sorted_by_cpus(problem):
            return SORT_SOLVER.parallel_us(problem.order, units) + FURTHER_LAUNCH_US * units
        further = 1
        if problem.n > topk.WHOLE:
            further += ceil_divide(8 * problem.dtype.itemsize, topk.LONG_DIGIT)
        select = on_threads(_selected_us(problem), units)
        sort = SORT_SOLVER.parallel_us(problem.selected, units)
        return select + sort + further * FURTHER_LAUNCH_US * units

    @staticmethod
    def _is_ranked(problem: TopkProblem) -> bool:
        few = problem.rows * problem.n <= topk.SHORT
        return few and problem.k <= topk.MOST_RANKED

    @staticmethod
    def _is_sorted_by_cpus(problem: TopkProblem) -> bool:
        share = CPU_SORTS_QUARTER if problem.dtype.itemsize == 8 else CPU_SORTS_EIGHTH
        return problem.n <= SORTED_ROW or share * problem.k >= problem.n

    @classmethod
    def _is_sorted(cls, problem: TopkProblem, device: Device) -> bool:
        if device.kind == "cpu":
            return cls._is_sorted_by_cpus(problem)
        if GPU_SORTS_HALF * problem.k >= problem.n:
            return True
        # Here time is that of launches, and a pass takes longer than a step of a sort.
        few = problem.n * problem.rows <= topk.SLICED and not topk.is_whole(problem, device)
        return few and not topk.alike_slices(problem, device)


class UniqueSolver(Solver[UniqueProblem]):
    """Each key once, in order: a sort, and the heads of runs of equal keys."""

    name = "unique"
    registry: ClassVar[Registry] = {"sort": "opencl_lab.ops.select.by_sort:UniqueBySort"}

    def serial_us(self, problem: UniqueProblem) -> float:
        """Return the estimated microseconds on one thread."""
        return SORT_SOLVER.serial_us(problem.sorting) + _heads_us(problem)

    def parallel_us(self, problem: UniqueProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        heads = on_threads(_heads_us(problem), units)
        sort = SORT_SOLVER.parallel_us(problem.sorting, units)
        return sort + heads + 2 * FURTHER_LAUNCH_US * units


def _selected_us(problem: TopkProblem) -> float:
    """Return the microseconds of ``radix-select`` without its sort, on one thread."""
    return 1e-3 * problem.rows * (ROW_NS + KEY_NS[problem.dtype.itemsize == 8] * problem.n)


def _heads_us(problem: UniqueProblem) -> float:
    """Return the microseconds to find the heads of runs, on one thread."""
    return 1e-3 * HEAD_NS * problem.n


TOPK_SOLVER = TopkSolver()
UNIQUE_SOLVER = UniqueSolver()
