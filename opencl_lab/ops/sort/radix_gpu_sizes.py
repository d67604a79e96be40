"""The sizes of groups and tiles of the radix sort for GPUs, as measured on an H200."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem

WARP = 32
TILE_BYTES = 36 << 10
"""Local memory for a tile, in bytes: small enough for several groups on a compute unit."""
WIDE_TILE_BYTES = 56 << 10
"""The same for keys of 8 bytes alone, where kernels may declare so much: fewer tiles look back."""
TILE_KEYS, TILE_PAIRS = 20, 18
"""Most keys of an item, without and with values: they stay in registers."""
FEWEST_KEYS = 8
"""Fewest keys of an item: smaller tiles lose more by look-back than they gain by their number."""
FEW_TILES = 4
"""Tiles per compute unit below which tiles are sized so that they share out evenly."""
ITEM_KEYS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22)


def moved_bytes(problem: SortProblem) -> int:
    """Return the bytes of a key in local memory, or of its value if that is longer."""
    value = Elements(problem).value_dtype
    return max(problem.dtype.itemsize, 0 if value is None else value.itemsize)


def in_one_launch(problem: SortProblem, device: Device) -> bool:
    """Return whether a group of the built-in configuration sorts a whole row."""
    wg_size, items = for_rows(problem, device)
    return problem.n <= wg_size * items


def for_rows(problem: SortProblem, device: Device) -> tuple[int, int]:
    """Return the items of a group that sorts whole rows, and the most keys of each item."""
    pairs = Elements(problem).value_dtype is not None
    light = device.capabilities.inline_ptx and moved_bytes(problem) <= 4 and not pairs
    return _largest(problem, device, 512 if light else 256)


def for_tiles(problem: SortProblem, device: Device) -> tuple[int, int]:
    """Return the items of a group, and the keys of each item, for rows of several tiles.

    Few tiles are made smaller, so that no compute unit has many more keys than the others.
    """
    limits = device.capabilities
    alone = problem.dtype.itemsize == 8 and Elements(problem).value_dtype is None
    wide = limits.inline_ptx and alone and limits.declared_memory >= 2 * WIDE_TILE_BYTES
    wg_size = 512 if wide else 384 if limits.inline_ptx else 256
    wg_size, most = _largest(problem, device, wg_size, WIDE_TILE_BYTES if wide else 0)
    keys, units = problem.rows * problem.n, device.compute_units
    if keys >= FEW_TILES * units * wg_size * most:
        return wg_size, most

    def busiest(items: int) -> tuple[int, int]:
        tiles = ceil_divide(keys, wg_size * items)
        # Keys per item of the unit that has the most tiles.
        return ceil_divide(tiles, units) * items, -items

    return wg_size, min((i for i in ITEM_KEYS if min(FEWEST_KEYS, most) <= i <= most), key=busiest)


def _largest(
    problem: SortProblem, device: Device, wg_size: int, tile_bytes: int = 0
) -> tuple[int, int]:
    """Return the items of a group, at most `wg_size`, and the most keys of an item."""
    limits = device.capabilities
    wg_size = min(wg_size, limits.max_work_group // WARP * WARP or WARP)
    tile_bytes = tile_bytes or min(TILE_BYTES, limits.local_memory * 3 // 4)
    room = max(tile_bytes, 1) // (wg_size * moved_bytes(problem))
    most = TILE_KEYS if Elements(problem).value_dtype is None else TILE_PAIRS
    return wg_size, max((items for items in ITEM_KEYS if items <= min(room, most)), default=2)
