"""The merge sort for CPUs: each row is sorted by one item, in its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem

TEMPLATE = "sort/merge_path_cpu.cl.mako"

CAPACITY = 1024
"""Most keys of a row; longer ones take radix a fraction of the time."""
MAX_POLLS = 1 << 20


def moved_as(elements: Elements) -> tuple[str, str | None]:
    """Return how elements are stored while sorted, and the OpenCL C type of their values."""
    problem = elements.problem
    if problem.indices or problem.value_bytes:
        return "indices" if problem.indices else "pairs", elements.value_type
    if problem.dtype.kind == "f":  # codes take longer to compute than to move
        return "codes", WORD_TYPES[problem.dtype.itemsize]
    return "keys", None


def element_bytes(problem: SortProblem) -> int:
    """Return the size of an element."""
    elements = Elements(problem)
    return 2 * problem.dtype.itemsize if moved_as(elements)[0] == "codes" else elements.nbytes


def _local_bytes(problem: SortProblem) -> int:
    """Return the local memory of a row in bytes: it is merged back and forth."""
    return 2 * CAPACITY * element_bytes(problem)


class MergePathCpu(Algorithm[SortProblem]):
    """Stable merge sort of short rows, four merges at a time: for single items, without barriers.

    It only compares keys.
    """

    name = "merge-path"
    templates = (TEMPLATE,)
    space = SearchSpace(())

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need keys of which all bits count, and rows that have room in a cache."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        if problem.n > CAPACITY:
            return f"on CPUs it sorts rows of at most {CAPACITY:,} keys"
        if _local_bytes(problem) > device.capabilities.local_memory:
            return "the device has no room for a row"
        return None

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return an empty configuration."""
        return Config()

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, whose items claim shares of the rows."""
        elements = Elements(problem)
        if problem.n * problem.rows == 0:
            return Plan(tuple(elements.buffers), ())
        moved, value_type = moved_as(elements)
        params: dict[str, Any] = {
            "ELEMENT": replace(elements.element, value=value_type),
            "MOVED": moved,
            "INDEX_T": c_type(index_type(problem.n * problem.rows)),
            "CAPACITY": CAPACITY,
            "MAX_POLLS": MAX_POLLS,
        }
        return phased_plan(
            problem, device, elements.buffers, elements.arguments, phases=1,
            items=min(device.compute_units, problem.rows), template=TEMPLATE, kernel="merge_cpu",
            params=params, local_bytes=_local_bytes(problem),
        )  # fmt: skip
