"""What sorts rows of keys, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.ops.by_kind import ByKind
from opencl_lab.ops.solver import AUTO, Registry, Solver
from opencl_lab.ops.sort.problem import SortProblem

MERGED = {4: 1 << 17, 8: 1 << 21}
"""Keys of a row up to which merging takes a GPU less time than radix, which has a launch per byte
of a key: on an H200 49 us for 50,000 int32 instead of 59, 126 for 10^6 int64 instead of 142."""
SHORTEST = {1: 128, 2: 256, 4: 1024, 8: 2048}
"""Keys of a row up to which a GPU merges rows in one launch."""
FEW = 128
"""Keys that take a CPU less than what a launch with more arguments adds: 25 take 12 us, not 15."""


class Radix(ByKind[SortProblem]):
    """Stable radix sort."""

    name = "radix"
    cpu = "opencl_lab.ops.sort.radix_cpu:RadixCpu"
    gpu = "opencl_lab.ops.sort.radix_gpu:RadixGpu"


class SortSolver(Solver[SortProblem]):
    """Stable sorting in the order of `numpy.sort`."""

    name = "sort"
    multiples: ClassVar[Mapping[str, float]] = {"merge-path": 4, "odd-even-merge": 12}
    registry: ClassVar[Registry] = {
        "radix": Radix(),
        "merge-path": "opencl_lab.ops.sort.merge_path:MergePath",
        "odd-even-merge": "opencl_lab.ops.sort.odd_even_merge:OddEvenMerge",
        "quicksort": "opencl_lab.ops.sort.quicksort_cpu:QuicksortCpu",
    }

    def ranked(self, problem: SortProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the fastest by measurements, then the others.

        That is radix, but for short rows on CPUs, and for what takes it longer to launch.
        """
        return (self._fastest(problem, device), *self.registry)

    def serial_us(self, problem: SortProblem) -> float:
        """Return the estimated microseconds on one thread."""
        from opencl_lab.ops.sort import estimates

        return estimates.serial_us(problem)

    def parallel_us(self, problem: SortProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        from opencl_lab.ops.sort import estimates

        return estimates.parallel_us(problem, units)

    @staticmethod
    def _fastest(problem: SortProblem, device: Device) -> str:
        keys = problem.rows * problem.n
        if device.kind == "cpu":
            from opencl_lab.ops.sort.quicksort_cpu import VECTOR_BYTES, pays

            wide = device.native_vector_bytes >= VECTOR_BYTES
            if pays(problem, device.compute_units, wide):
                return "quicksort"
            if keys <= FEW and problem.dtype != np.float16:  # which takes three launches
                return "odd-even-merge"
            return "radix"
        size = problem.dtype.itemsize
        if problem.n <= SHORTEST[size]:
            return "merge-path"
        most = MERGED.get(size, 0)
        if problem.n > most or keys > 2 * most:
            return "radix"
        from opencl_lab.ops.sort.radix_gpu import in_one_launch

        if size < 8 and in_one_launch(problem, device):
            return "radix"
        return "odd-even-merge" if size == 4 else "merge-path"


SORT_SOLVER = SortSolver()
