"""The merge sort for GPUs: tiles of work-groups, and merges of which each group has a tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.kernels import c_type, index_type, largest_power
from opencl_lab.operations.sort.elements import Elements
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.plan import Argument, Buffer, Launch, Plan
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "gpu_config", "gpu_plan"]

TEMPLATE = "sort/merge_path_gpu.cl.mako"

GROUP = 256
EXCHANGE = 24 << 10
"""Bytes of local memory for a tile: GPUs hold several groups a unit then."""
ITEM_KEYS = 17
"""Keys of an item, at most: an odd number, so that items of a warp meet in no bank."""
FEW_KEYS = 7  # where there are too few to give each unit a group


def _has_slots(problem: SortProblem) -> bool:
    """Return whether elements keep slots: they are more than the codes of their keys."""
    return problem.dtype.kind == "f" or Elements(problem).value_dtype is not None


def _local_bytes(problem: SortProblem, tile: int) -> int:
    """Return the local memory of a kernel: codes, slots and two words."""
    slots = tile if _has_slots(problem) else 1
    return problem.dtype.itemsize * (tile + 1) + 2 * slots + 16


def _row_items(problem: SortProblem, wg_size: int, item_keys: int) -> int:
    """Return how many items sort a row, or the part of it that a group has."""
    return min(wg_size, 1 << (-(-problem.n // item_keys) - 1).bit_length())


def gpu_config(problem: SortProblem, device: Device) -> dict[str, int]:
    """Return the size of groups and tiles: short rows get items that have few keys to spare."""
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
        # Even numbers of keys that fit better are not worth the conflicts of banks.
        items = max(-(-problem.n // row_items) | 1, 3)
        while wg_size > max(row_items, 32) and problem.rows * row_items < wg_size:
            wg_size //= 2
    elif problem.rows * problem.n < device.compute_units * wg_size * items:
        items = min(items, FEW_KEYS)
    return {"WG_SIZE": wg_size, "ITEM_KEYS": items}


def gpu_plan(problem: SortProblem, config: Config, device: Device) -> Plan:
    """Plan one launch that sorts tiles, and one for each doubling of the runs."""
    elements = Elements(problem)
    buffers = {item.name: item for item in elements.buffers}
    if problem.n * problem.rows == 0:
        return Plan(tuple(buffers.values()), ())
    wg_size, item_keys = config.integer("WG_SIZE"), config.integer("ITEM_KEYS")
    row_items = _row_items(problem, wg_size, item_keys)
    tile, index = wg_size * item_keys, index_type(problem.n)
    tiles = -(-problem.n // (row_items * item_keys))
    merges = (tiles - 1).bit_length()
    shape = (problem.rows, problem.n)
    value = elements.value_dtype

    def scratch(name: str, dtype: np.dtype[Any] | None) -> str:
        if name not in buffers and dtype is not None:
            buffers[name] = Buffer(name, "scratch", shape, dtype)
        return name

    def names(left: int) -> tuple[str, str]:
        """Return where keys and values are with so many launches left: the last are the user's."""
        if left % 2:
            return scratch("spare", problem.dtype), scratch("spare_values", value)
        if left and problem.indices:  # which have another type on the way
            return scratch("middle", problem.dtype), scratch("middle_values", value)
        return "sorted", "sorted_values"

    launches = []
    source, source_values = "keys", "values"
    for number in range(merges + 1):
        left = merges - number
        last = problem.indices and not left
        target, target_values = names(left)
        arguments: dict[str, Argument] = {"source": source}
        if not last:
            arguments["target"] = target
        if value is not None:
            if number or not problem.indices:
                arguments["source_values"] = source_values
            arguments["target_values"] = target_values
        arguments["n"] = index(problem.n)
        if number:
            arguments["width"] = np.uint32(1 << (number - 1))
            groups = problem.rows * tiles
        else:
            arguments["rows"] = np.uint64(problem.rows)
            groups = -(-problem.rows * tiles // (wg_size // row_items))
        launches.append(
            Launch(
                template=TEMPLATE,
                kernel="merge_tiles" if number else "sort_tiles",
                params={
                    **elements.params,
                    "POSITIONS": problem.indices,
                    "VALUE_OUT_T": "long" if last else elements.value_type,
                    "KEYS_OUT": not last,
                    "INDEX_T": c_type(index),
                    "WG_SIZE": wg_size,
                    "ITEM_KEYS": item_keys,
                    "ROW_ITEMS": row_items,
                    "PTX": device.capabilities.inline_ptx,
                },
                global_size=(groups * wg_size,),
                local_size=(wg_size,),
                arguments=arguments,
                local_bytes=_local_bytes(problem, tile),
            )
        )
        source, source_values = target, target_values
    return Plan(tuple(buffers.values()), tuple(launches))
