"""The merge sort: each work-group sorts a tile, then merges a tile of the result."""

from __future__ import annotations

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    c_type,
    index_type,
    lacks_groups,
    largest_power,
    power_of_two,
)
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, ceil_divide
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem

TEMPLATE = "sort/merge_path.cl.mako"

GROUP = 256
EXCHANGE = 24 << 10
"""Local memory for a tile, in bytes: small enough for several groups on a compute unit."""
ITEM_KEYS = 17
"""Most keys per item: an odd number, so that the items of a warp have no bank conflicts."""
SLOTS = 1 << 16
"""Most elements of a tile: positions in it have 16 bits."""
FEW_KEYS = 7  # where there are too few keys to give each compute unit a group


def _has_slots(problem: SortProblem) -> bool:
    """Return whether a tile keeps slot numbers, as its elements are more than codes of keys."""
    return problem.dtype.kind == "f" or Elements(problem).value_dtype is not None


def _local_bytes(problem: SortProblem, tile: int) -> int:
    """Return the local memory of a kernel in bytes: codes, slot numbers and two words."""
    slots = tile if _has_slots(problem) else 1
    return problem.dtype.itemsize * (tile + 1) + 2 * slots + 16


def _row_items(problem: SortProblem, wg_size: int, item_keys: int) -> int:
    """Return how many items sort a row, or the tile of a row that a group owns."""
    return min(wg_size, 1 << (ceil_divide(problem.n, item_keys) - 1).bit_length())


class MergePath(Algorithm[SortProblem]):
    """Stable merge sort whose merges are divided into equal tiles of the result (merge path).

    It only compares keys. Tiles are sorted and merged in registers and local memory.
    """

    name = "merge-path"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (32, 64, 128, 256, 512), "items in a group"),
            Parameter("ITEM_KEYS", (3, 5, 7, 9, 11, 13, 15, 17, 19, 23), "keys of an item"),
        ),
        (
            power_of_two("WG_SIZE"),
            Constraint(lambda c: c.integer("WG_SIZE") >= 4, "WG_SIZE must be at least 4"),
            Constraint(lambda c: c.integer("ITEM_KEYS") >= 2, "ITEM_KEYS must be at least 2"),
            Constraint(
                lambda c: c.integer("WG_SIZE") * c.integer("ITEM_KEYS") <= SLOTS,
                f"WG_SIZE * ITEM_KEYS must not be above {SLOTS}",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need groups with barriers in loops, and keys of which all bits count."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        if device.kind == "cpu":
            return "it is for groups of GPUs; the threads of a CPU sort faster by others"
        return lacks_groups(device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the size of groups and tiles; for short rows, tiles with little padding."""
        limits = device.capabilities
        wg_size = largest_power(GROUP, limits.max_work_group)
        room = min(EXCHANGE, limits.local_memory * 3 // 4)
        items = ITEM_KEYS
        while items > 3 and _local_bytes(problem, wg_size * items) > room:
            items -= 2
        while wg_size > 4 and _local_bytes(problem, wg_size * items) > limits.local_memory:
            wg_size //= 2
        if problem.n <= wg_size * items:
            row_items = _row_items(problem, wg_size, items)
            # An even number of keys may pad less, but its bank conflicts cost more.
            items = max(ceil_divide(problem.n, row_items) | 1, 3)
            while wg_size > max(row_items, 32) and problem.rows * row_items < wg_size:
                wg_size //= 2
        elif problem.rows * problem.n < device.compute_units * wg_size * items:
            items = min(items, FEW_KEYS)
        return Config(WG_SIZE=wg_size, ITEM_KEYS=items)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch that sorts tiles, and one for each doubling of the length of runs."""
        elements = Elements(problem)
        if problem.n * problem.rows == 0:
            return Plan(tuple(elements.buffers), ())
        return Merges(elements, config, device).plan()


class Merges:
    """The launches: tiles are sorted, then merged, back and forth between two arrays.

    With `runs`, so many runs of any lengths, which end at `ends`, are merged, and none is sorted.
    """

    def __init__(self, elements: Elements, config: Config, device: Device, runs: int = 0) -> None:
        self.elements, self.problem = elements, elements.problem
        self.wg_size, self.item_keys = config.integer("WG_SIZE"), config.integer("ITEM_KEYS")
        self.row_items = _row_items(self.problem, self.wg_size, self.item_keys)
        self.tiles = ceil_divide(self.problem.n, self.row_items * self.item_keys)
        self.runs, self.merges = runs, ((runs or self.tiles) - 1).bit_length()
        self.index = index_type(self.problem.n)
        self.ptx = device.capabilities.inline_ptx
        self.buffers = {item.name: item for item in elements.buffers}
        if runs:
            self.buffers["ends"] = Buffer("ends", "in", (runs,), np.dtype(np.int64))

    def plan(self) -> Plan:
        """Return the plan."""
        launches = []
        source = ("keys", "values")
        for number in range(bool(self.runs), self.merges + 1):
            target = self._target(self.merges - number)
            launches.append(self._launch(number, source, target))
            source = target
        return Plan(tuple(self.buffers.values()), tuple(launches))

    def _target(self, left: int) -> tuple[str, str]:
        """Return the buffers that a launch with `left` launches after it writes; 0: the user's."""
        if not left or not (left % 2 or self.problem.indices):
            return "sorted", "sorted_values"
        # Indices have another type between launches than in the result.
        names = ("spare", "spare_values") if left % 2 else ("middle", "middle_values")
        dtypes = (self.problem.dtype, self.elements.value_dtype)
        for name, dtype in zip(names, dtypes, strict=True):
            if dtype is not None and name not in self.buffers:
                shape = (self.problem.rows, self.problem.n)
                self.buffers[name] = Buffer(name, "scratch", shape, dtype)
        return names

    def _launch(self, number: int, source: tuple[str, str], target: tuple[str, str]) -> Launch:
        """Return launch 0, which sorts tiles, or a later one, which merges."""
        problem, values = self.problem, self.elements.value_dtype is not None
        last = problem.indices and number == self.merges
        arguments: dict[str, Argument] = {"source": source[0]}
        if not last:
            arguments["target"] = target[0]
        if values and (number or not problem.indices):
            arguments["source_values"] = source[1]
        if values:
            arguments["target_values"] = target[1]
        groups = problem.rows * self.tiles
        if self.runs:
            arguments |= {"ends": "ends", "runs": np.uint32(self.runs)}
            pairs = ceil_divide(self.runs, 1 << number)  # each may end within a tile
            groups = problem.n // (self.wg_size * self.item_keys) + pairs
        arguments["n"] = self.index(problem.n)
        if number:
            arguments["width"] = np.uint32(1 << (number - 1))
        else:
            arguments["rows"] = np.uint64(problem.rows)
            groups = ceil_divide(groups, self.wg_size // self.row_items)
        return Launch(
            template=TEMPLATE,
            kernel="merge_tiles" if number else "sort_tiles",
            params={
                "ELEMENT": self.elements.element,
                "INDICES_OUT": last,
                "INDEX_T": c_type(self.index),
                "WG_SIZE": self.wg_size,
                "ITEM_KEYS": self.item_keys,
                "ROW_ITEMS": self.row_items,
                "RUNS": bool(self.runs),
                "MERGES": self.merges > 0,
                "PTX": self.ptx,
            },
            global_size=(groups * self.wg_size,),
            local_size=(self.wg_size,),
            arguments=arguments,
            local_bytes=_local_bytes(problem, self.wg_size * self.item_keys),
        )
