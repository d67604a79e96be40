"""What sorts rows of keys, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.solver import AUTO, Algorithm, Registry, Solver, made
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.tuned.database import Match

MERGED = {4: 1 << 17, 8: 1 << 21}
"""Keys of a row up to which merging takes a GPU less time than radix, which has a launch per byte
of a key: on an H200 49 us for 50,000 int32 instead of 59, 126 for 10^6 int64 instead of 142."""
SAMPLED = 1 << 18
"""Keys of 4 bytes up to which two launches by samples take less time than merging or radix, on GPUs
whose keys are ranked by inline PTX: on an H200 40 us for 100,000 int32 instead of 66, and for the
indices of 200,000 54 instead of 57; 300,000 int32 would take 60 instead of 50."""
SHORTEST = {1: 128, 2: 256, 4: 1024, 8: 2048}
"""Keys of a row up to which a GPU merges rows in one launch."""
FEW = 128
"""Keys in all up to which a CPU takes odd-even merging, whose launch has the fewest arguments: it
sorts 25 keys in 12 us, radix in 15."""


class Radix(Algorithm[SortProblem]):
    """Stable radix sort: one class for CPUs and another one for all other devices.

    Each of the two has its own templates and search space; `on` returns it. All methods that take a
    device ask the one for that device.
    """

    name = "radix"

    def __init__(self) -> None:
        self._made: dict[str, Algorithm[SortProblem]] = {}

    def on(self, kind: str) -> Algorithm[SortProblem]:
        """Return the sort for a kind of device."""
        form = "cpu" if kind == "cpu" else "gpu"
        if form not in self._made:
            place = f"opencl_lab.ops.sort.radix_{form}:Radix{form.title()}"
            self._made.setdefault(form, made(place))
        found = self._made[form]
        found.operation = self.operation
        return found

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Return what the sort for this device says."""
        return self.on(device.kind).supports(problem, device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return that of the sort for this device."""
        return self.on(device.kind).default_config(problem, device)

    def search_space(self, problem: SortProblem, device: Device) -> SearchSpace:
        """Return that of the sort for this device."""
        return self.on(device.kind).search_space(problem, device)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan by the sort for this device."""
        return self.on(device.kind).plan(problem, config, device)

    def configure(
        self, problem: SortProblem, device: Device, values: Mapping[str, Any] | None = None
    ) -> Config:
        """Return that of the sort for this device."""
        return self.on(device.kind).configure(problem, device, values)

    def tuned(
        self, problem: SortProblem, device: Device, values: Mapping[str, Any] | None = None
    ) -> tuple[Config, Match] | None:
        """Return that of the sort for this device."""
        return self.on(device.kind).tuned(problem, device, values)


class SortSolver(Solver[SortProblem]):
    """Stable sorting in the order of `numpy.sort`."""

    name = "sort"
    multiples: ClassVar[Mapping[str, float]] = {"odd-even-merge": 12}
    registry: ClassVar[Registry] = {
        "radix": Radix(),
        "merge-path": "opencl_lab.ops.sort.merge_path:MergePath",
        "sample-sort": "opencl_lab.ops.sort.sample_sort:SampleSort",
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
        sampled = size == 4 and device.capabilities.inline_ptx and keys <= SAMPLED
        if not sampled and (problem.n > most or keys > 2 * most):
            return "radix"
        from opencl_lab.ops.sort.radix_gpu_sizes import in_one_launch

        if size < 8 and in_one_launch(problem, device):
            return "radix"
        if sampled:
            return "sample-sort"
        return "odd-even-merge" if size == 4 else "merge-path"


SORT_SOLVER = SortSolver()
