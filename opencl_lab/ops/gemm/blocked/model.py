"""Which tiles of `blocked` take the least time, by a small model of the device.

A compute unit of a GPU holds as many groups as its registers and its local memory allow. All
groups that the device holds at once are a wave. The time of a wave for one k tile is the largest of
three: its multiplications at full rate; its reads at the bandwidth of the caches; and one group's
own instructions and latency, if there are too few groups to hide latency. So large tiles are the
most efficient, and small ones keep a device busy that has little to do; the time depends on how
many waves there are and how full the last one is. Rows that are not whole vectors cost a load for
each number, and registers.

Source: own; the constants were fitted to times of 2,000 pairs of a product and a tile on an NVIDIA
H200. They are round, and hold for GPUs whose units are alike: 64 Ki registers, 128 multiplications
a clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit
from opencl_lab.core.plan import ceil_divide, round_up
from opencl_lab.ops.gemm.launches import VECTOR_BYTES, vector_width
from opencl_lab.ops.gemm.problem import GemmProblem

REGISTERS = 1 << 16
"""Registers of a compute unit, of four bytes."""
MOST_REGISTERS = 255
"""Most registers of an item."""
OWN_REGISTERS, LOAD_REGISTERS = 16, 2
"""Registers of an item besides sums and loaded values, and those of a load, for its address."""
LANES = 128
"""Multiplications of a compute unit per clock."""
WARP = 32
MOST_GROUPS, MOST_ITEMS = 24, 2048
"""Most groups, and most items, that a compute unit holds."""
LOCAL_MEMORIES = 4.5
"""Local memory of a compute unit, in multiples of the most that a group may have."""
READ_CLOCKS = 3
"""Clocks of a warp to read a vector from local memory."""
LOAD_CLOCKS = 7
"""Clocks of a warp to copy a load to local memory."""
STEP_CLOCKS = 10
"""Clocks of a warp for the loop and the barrier of a k tile."""
WAIT_CLOCKS = 600
"""Latency of a k tile in clocks, of memory and of the barrier, if neither other groups nor other
items along k hide it."""
CACHE_BYTES = 22
"""Bytes per clock from the device's caches to a compute unit."""
EDGE_CLOCKS, STORE_CLOCKS = 2_500, 10
"""Clocks in which groups begin and end; clocks of a group to store one result per lane."""
EXCHANGE_CLOCKS = 2.5
"""Clocks of a group to exchange one sum per lane, where several items have the same sums."""
LAST_SHARE = 0.7
"""Weight of the last wave's own time after full ones; the other weight is that of a full wave."""
BEGIN_CLOCKS = 5_000
"""Clocks in which a launch begins and ends."""
ADDING_CLOCKS = 20_000
"""Clocks of a second launch: ten microseconds on the host."""
HOST_CLOCKS, JOIN_HOST_CLOCKS, TWO_HOST_CLOCKS = 16_000, 32_000, 60_000
"""Clocks of the host per call in a row of calls: one launch, one that sums slices, two launches.

No product is faster.
"""
JOIN_CLOCKS = 2_000
"""Clocks in which a group announces that it is done, and sees what others have written."""
DOUBT, DOUBT_CLOCKS = 1.08, 1_500
"""Least gain for which k is split: waits of groups for each other are not in the model."""
FETCH_CLOCKS = 1_000
"""Latency in clocks of reading what other groups have written."""
FETCHED = 16
"""Vectors that an item has in flight during that latency."""
FETCHED_BYTES = 48
"""Most bytes per clock that one group reads."""
BYTES_A_CLOCK = 16
"""Bytes per clock from memory to a compute unit."""
LEAST_STEPS = 8
"""Fewest k tiles of a slice of k; half as many where no second launch sums the slices."""
MOST_SHARERS = 8
"""Groups per compute unit up to which k is split to have more."""


@dataclass(frozen=True)
class GroupTile:
    """The tile of a group of `Blocked`: its parameters by their names."""

    WORK_M: int
    WORK_N: int
    WG_M: int
    WG_N: int
    TILE_K: int
    WG_K: int = 1

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.WORK_M * self.WG_M

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.WORK_N * self.WG_N

    @property
    def items(self) -> int:
        """Items of the group."""
        return self.WG_M * self.WG_N * self.WG_K

    @property
    def prefetched(self) -> int:
        """Elements of the next k tile that an item holds."""
        return (self.rows + self.columns) * self.TILE_K // self.items

    def count(self, problem: GemmProblem) -> int:
        """Return how many tiles a product has."""
        return ceil_divide(problem.m, self.rows) * ceil_divide(problem.n, self.columns)

    def local_bytes(self, buffers: int, gap: int, itemsize: int) -> int:
        """Return the bytes of local memory of its tiles, whose lines are padded by `gap`."""
        return buffers * self.TILE_K * (self.rows + self.columns + 2 * gap) * itemsize


TILES = tuple(
    GroupTile(*shape)
    for shape in (
        (16, 8, 4, 32, 8),
        (16, 8, 4, 16, 16),
        (16, 8, 8, 8, 16),
        (16, 8, 8, 16, 8),
        (16, 8, 4, 16, 16, 2),
        (16, 8, 4, 8, 16, 2),
        (16, 8, 4, 8, 16, 4),
        (16, 8, 4, 8, 32, 4),
        (8, 8, 8, 16, 16, 2),
        (8, 8, 16, 16, 16),
        (8, 8, 8, 16, 16),
        (8, 8, 8, 16, 8),
        (8, 8, 16, 8, 8),
        (8, 8, 8, 8, 16),
        (8, 8, 4, 16, 16),
        (6, 8, 8, 16, 16),
        (8, 4, 8, 16, 16),
        (8, 4, 8, 16, 8),
        (8, 4, 16, 8, 16),
        (8, 4, 4, 32, 16),
        (8, 4, 4, 16, 32),
        (6, 4, 8, 16, 16),
        (4, 8, 4, 16, 16),
        (4, 4, 8, 16, 16),
        (4, 4, 8, 16, 32),
        (4, 4, 16, 16, 16),
        (4, 4, 16, 8, 32),
        (4, 4, 8, 16, 8),
        (4, 4, 4, 32, 16),
        (4, 4, 4, 32, 32),
        (4, 4, 32, 4, 16),
        (4, 4, 32, 4, 32),
        (4, 4, 8, 8, 16),
        (4, 4, 8, 8, 32),
        (4, 4, 4, 8, 32),
        (2, 4, 4, 32, 32),
        (2, 4, 4, 16, 32),
        (2, 4, 8, 8, 32),
        (4, 2, 32, 4, 32),
        (2, 2, 8, 8, 16),
        (2, 2, 8, 8, 32),
        (2, 2, 4, 4, 8),
        (2, 2, 1, 1, 8),
    )
)
"""The tiles for GPUs, large ones first."""


def load_widths(tile: GroupTile, problem: GemmProblem, device: Device) -> tuple[int, int]:
    """Return how many elements of each factor to load at once: powers of two.

    They divide a row in memory, its segment in the tile and the share of an item. They divide the
    lines of the tile in local memory, too, whose padding is a vector of the device.
    """
    vector, widths = vector_width(problem, device), []
    for along, length, extent in (
        (problem.trans_a, problem.m, tile.rows),
        (not problem.trans_b, problem.n, tile.columns),
    ):
        size, side = (length, extent) if along else (problem.k, tile.TILE_K)
        widths.append(math.gcd(vector, size, side, extent * tile.TILE_K // tile.items))
    return widths[0], widths[1]


@lru_cache(maxsize=1024)
def best_tiles(problem: GemmProblem, device: Device) -> tuple[tuple[GroupTile, int], ...]:
    """Return the tiles that fit the device, each with its number of slices of k, best first."""
    found = _of_cpu(problem, device) if device.kind == "cpu" else _of_gpu(problem, device)
    return tuple(found)


def _fits(tile: GroupTile, buffers: int, problem: GemmProblem, device: Device) -> bool:
    local = tile.local_bytes(buffers, vector_width(problem, device), problem.sum_type.itemsize)
    return tile.items <= group_limit(device) and local <= device.capabilities.local_memory


# ------------------------------------------------------------------------ CPUs


def _of_cpu(problem: GemmProblem, device: Device) -> list[tuple[GroupTile, int]]:
    """Return tiles that fit the L2 cache; the best gives every unit work.

    Items run one after the other, with as many sums as a core has registers. Their k tiles are
    long, but not much longer than k.
    """
    columns = max(1, 64 // problem.sum_type.itemsize)
    longest = max(4, 1 << max(0, problem.depth - 1).bit_length())
    tiles = [
        GroupTile(6, columns, side, max(1, side // 2), min(depth, longest))
        for side, depth in ((16, 128), (8, 128), (4, 64), (2, 32), (1, 16), (1, 4))
    ]
    tiles = [tile for tile in tiles if _fits(tile, 1, problem, device)]

    def fills(tile: GroupTile) -> bool:
        area = tile.rows * tile.columns * tile.count(problem)
        groups = tile.count(problem) * problem.batch
        return groups >= 2 * device.compute_units and area <= 2 * problem.m * problem.n

    tiles.sort(key=lambda tile: not fills(tile))
    if tiles and not fills(tiles[0]):
        tiles.sort(key=lambda tile: tile.rows * tile.columns)
    return [(tile, 1) for tile in tiles]


# ------------------------------------------------------------------------ GPUs


def _of_gpu(problem: GemmProblem, device: Device) -> list[tuple[GroupTile, int]]:
    """Return tiles and numbers of slices of k, the fastest first."""
    times = {
        (tile, splits): _time(tile, splits, problem, device)
        for tile in TILES
        if registers_of(tile, problem, device) <= _most_registers(device)
        if _fits(tile, 2, problem, device)
        for splits in _splits(tile, problem, device)
        if tile.WG_K == 1 or _shares_depth(tile, splits, problem, device)
    }
    return sorted(times, key=lambda choice: times[choice])


def _shares_depth(tile: GroupTile, splits: int, problem: GemmProblem, device: Device) -> bool:
    """Return whether several items may have the same sums: where all groups run at once.

    That was measured on NVIDIA's GPUs alone.
    """
    groups = tile.count(problem) * problem.batch * splits
    at_once = device.compute_units * _groups_of_unit(tile, problem, device)
    return device.capabilities.inline_ptx and groups <= at_once


def _words(problem: GemmProblem) -> int:
    return max(1, problem.sum_type.itemsize // 4)


def _loads(tile: GroupTile, problem: GemmProblem, device: Device) -> int:
    """Return how many loads an item makes per k tile."""
    of_a, of_b = load_widths(tile, problem, device)
    a_elements, b_elements = tile.rows * tile.TILE_K, tile.columns * tile.TILE_K
    return a_elements // tile.items // of_a + b_elements // tile.items // of_b


def _most_registers(device: Device) -> int:
    return device.capabilities.item_registers or MOST_REGISTERS


def registers_of_line(tile: GroupTile, problem: GemmProblem) -> int:
    """Return how many registers hold what an item reads for one value of k."""
    turned = 2 if problem.is_complex else 1  # see the template
    return _words(problem) * (tile.WORK_M + turned * tile.WORK_N)


def registers_of(tile: GroupTile, problem: GemmProblem, device: Device) -> int:
    """Return about how many registers an item needs."""
    elements = tile.WORK_M * tile.WORK_N + tile.WORK_M + tile.WORK_N + tile.prefetched
    addresses = LOAD_REGISTERS * _loads(tile, problem, device)
    return _words(problem) * elements + addresses + OWN_REGISTERS


def _groups_of_unit(tile: GroupTile, problem: GemmProblem, device: Device) -> int:
    """Return about how many groups a compute unit holds."""
    items = round_up(tile.items, WARP)
    registers = min(_most_registers(device), registers_of(tile, problem, device))
    local = tile.local_bytes(2, vector_width(problem, device), problem.sum_type.itemsize)
    room = int(LOCAL_MEMORIES * device.capabilities.local_memory)
    limits = REGISTERS // (items * registers), MOST_ITEMS // items, room // local
    return max(1, min(MOST_GROUPS, *limits))


def _splits(tile: GroupTile, problem: GemmProblem, device: Device) -> Iterator[int]:
    """Yield numbers of slices of k that give every unit one group, two, or all that it holds."""
    yield 1
    groups = max(1, tile.count(problem) * problem.batch)
    least = LEAST_STEPS // (2 if device.capabilities.visible_writes else 1)
    most = problem.depth // (least * tile.TILE_K)
    for held in range(1, min(MOST_SHARERS, _groups_of_unit(tile, problem, device)) + 1):
        splits = held * device.compute_units // groups
        if 2 <= splits <= most:
            yield splits


def _time(tile: GroupTile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return about how many clocks a product takes in a row of calls, to compare tiles."""
    clocks = _clocks(tile, splits, problem, device)
    if splits == 1:
        host = HOST_CLOCKS
    elif reduces_in_launch(tile, splits, problem, device):
        clocks = DOUBT * (clocks + _joining(tile, splits, problem, device)) + DOUBT_CLOCKS
        host = JOIN_HOST_CLOCKS
    else:
        clocks = DOUBT * (clocks + _adding(splits, problem, device))
        host = TWO_HOST_CLOCKS
    elements = problem.m * problem.k + problem.k * problem.n + problem.m * problem.n
    nbytes = elements * problem.batch * problem.dtype.itemsize
    memory = nbytes / (BYTES_A_CLOCK * device.compute_units)
    clocks = _together(clocks, memory) + BEGIN_CLOCKS
    return max(clocks, host) + clocks / 20  # the host does not always take so long


def _together(one: float, other: float) -> float:
    """Return the time of two overlapping activities: the longer one, or more if both are long."""
    return float((one**3 + other**3) ** (1 / 3))


def _clocks(tile: GroupTile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of all waves."""
    units, held = device.compute_units, _groups_of_unit(tile, problem, device)
    full, rest = divmod(tile.count(problem) * problem.batch * splits, units * held)
    whole = _wave(tile, splits, held, problem, device) if full else 0.0
    last = _wave(tile, splits, ceil_divide(rest, units), problem, device) if rest else 0.0
    if full and rest:  # units neither start their last groups together nor share them evenly
        last = LAST_SHARE * last + (1 - LAST_SHARE) * whole
    return full * whole + last


def _wave(tile: GroupTile, splits: int, held: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks in which each compute unit does `held` groups."""
    steps: float = ceil_divide(problem.depth, splits * tile.TILE_K)
    own = _step(tile, problem, device)
    warps = round_up(tile.items, WARP) / LANES
    nbytes = (tile.rows + tile.columns) * tile.TILE_K * problem.dtype.itemsize
    shared = held * _together(own * warps, nbytes / CACHE_BYTES)
    step = _together(shared, own * max(1.0, warps) + WAIT_CLOCKS / tile.WG_K)
    moved: float = STORE_CLOCKS
    if tile.WG_K > 1:
        moved += EXCHANGE_CLOCKS * tile.WG_K
        steps += 0.5  # all groups run at once, and wait for the first k tile
    store = moved * _words(problem) * tile.rows * tile.columns / LANES
    return steps * step + EDGE_CLOCKS + held * store


def reduces_in_launch(tile: GroupTile, splits: int, problem: GemmProblem, device: Device) -> bool:
    """Return whether the last group of a tile sums its slices, instead of a second launch."""
    if not device.capabilities.visible_writes:
        return False
    return _joining(tile, splits, problem, device) <= _adding(splits, problem, device)


def _joining(tile: GroupTile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks in which the last groups of all tiles sum their slices."""
    own = splits * tile.WORK_M * tile.WORK_N // tile.WG_K * problem.sum_type.itemsize
    rounds = ceil_divide(tile.count(problem) * problem.batch, device.compute_units)
    trips = ceil_divide(own, FETCHED * VECTOR_BYTES)
    return JOIN_CLOCKS + max(trips * FETCH_CLOCKS, rounds * own * tile.items / FETCHED_BYTES)


def _adding(splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of a second launch that sums all slices."""
    sums = problem.batch * problem.m * problem.n
    nbytes = 2 * splits * sums * problem.sum_type.itemsize
    return ADDING_CLOCKS + nbytes / (BYTES_A_CLOCK * device.compute_units)


def _step(tile: GroupTile, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of one warp for a k tile."""
    words = _words(problem)
    # A complex product is four real ones; one of doubles counts as two, or takes longer anyway.
    products = tile.WORK_M * tile.WORK_N * (words * 2 if problem.is_complex else words)
    reads = max(2.0, (tile.WORK_M + tile.WORK_N) * words / 4)
    loads = LOAD_CLOCKS * _loads(tile, problem, device)
    return tile.TILE_K // tile.WG_K * (products + READ_CLOCKS * reads) + loads + STEP_CLOCKS
