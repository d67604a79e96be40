"""The merge sort for CPUs: groups of one item, which claim the tasks of one phase after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type, largest_power, power_of_two
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem

TEMPLATE = "sort/merge_path_cpu.cl.mako"

CACHED = 1 << 18
"""Largest tile in bytes: two of them fit the cache of a compute unit."""
LOCAL = 64 << 10
"""Local memory, in bytes, up to which rows of one tile are sorted there and need no buffers."""
TASKS_OF_UNIT = 4
LEAST, MOST = 1024, 32768
"""Fewest and most elements of a tile, which one item sorts alone."""
MAX_POLLS = 1 << 20
TILES = (1024, 2048, 4096, 8192, 16384, 32768)


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


class MergePathCpu(Algorithm[SortProblem]):
    """Stable merge sort whose merges are divided into equal stretches of the result (merge path).

    It only compares keys. The form for CPUs: single items, without barriers.
    """

    name = "merge-path"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("TILE", TILES, "elements in a cache"),
            Parameter("STRETCH", (*TILES, 65536), "elements of the result that a merge task makes"),
        ),
        (
            power_of_two("TILE"),
            power_of_two("STRETCH"),
            Constraint(lambda c: c.integer("TILE") >= 8, "TILE must be at least 8"),
            Constraint(
                lambda c: c.integer("STRETCH") <= 2 * c.integer("TILE"),
                "STRETCH must not be more than two tiles",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need keys of which all bits count."""
        return None if problem.bits is None else PARTIAL_KEYS

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return tiles for which the cache has room, and which give each unit some."""
        total = problem.n * problem.rows
        share = largest_power(total // (TASKS_OF_UNIT * device.compute_units))
        most = min(MOST, largest_power(CACHED // element_bytes(problem)))
        tile = max(min(share, most, largest_power(2 * problem.n - 1)), LEAST)
        return Config(TILE=tile, STRETCH=tile)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, or one per phase where items do not see what others have written."""
        elements = Elements(problem)
        moved, value_type = moved_as(elements)
        buffers = elements.buffers
        n, rows = problem.n, problem.rows
        if n * rows == 0:
            return Plan(tuple(buffers), ())
        tile, stretch = config.integer("TILE"), config.integer("STRETCH")
        tiles = ceil_divide(n, tile)
        merges = (tiles - 1).bit_length()
        capacity = max(tile, stretch)
        items = min(device.compute_units, rows * tiles)
        element = np.dtype(f"V{element_bytes(problem)}")

        local_bytes = 2 * capacity * element.itemsize
        alone = not merges and local_bytes <= min(LOCAL, device.capabilities.local_memory)
        arguments: dict[str, Argument] = dict(elements.arguments)
        runs = {"spares": items * 2 * capacity, "first": n * rows if merges else 1}
        if moved != "keys":  # for keys, the result is the second array
            runs["second"] = n * rows if merges > 1 else 1
        if not alone:
            arguments.update(named(*runs))
            buffers += [Buffer(name, "scratch", (size,), element) for name, size in runs.items()]
        params: dict[str, Any] = {
            "ELEMENT": replace(elements.element, value=value_type),
            "MOVED": moved,
            "INDEX_T": c_type(index_type(n * rows)),
            "SPACE": "__local" if alone else "__global",
            "TILE": tile,
            "STRETCH": stretch,
            "CAPACITY": capacity,
            "MAX_POLLS": MAX_POLLS,
        }
        return phased_plan(
            problem, device, buffers, arguments, phases=1 + merges, items=items, template=TEMPLATE,
            kernel="merge_cpu", params=params, local_bytes=local_bytes if alone else 0,
        )  # fmt: skip
