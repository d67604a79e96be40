"""Which tiles of `blocked` take the least time, by a small model of the work of a device.

A compute unit of a GPU holds as many groups as its registers and its local memory allow. All
groups that the device holds are one wave. A step along k takes a wave as long as its
multiplications, as what caches give it, or as one group's own time and the wait for what it reads,
if too few groups are there to fill that wait. So large tiles multiply best, and small ones fill a
device that has little to do; the least time is a matter of how many waves there are and how full
the last is. Rows that are no whole vectors cost a load for each number, and registers.

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
"""Registers that an item can have."""
OWN_REGISTERS, LOAD_REGISTERS = 16, 2
"""Registers of an item beside its sums and what it reads, and those of a load, for its address."""
LANES = 128
"""Multiplications of a compute unit in a clock."""
WARP = 32
MOST_GROUPS, MOST_ITEMS = 24, 2048
"""Groups that a unit holds, however small, and items."""
LOCAL_MEMORIES = 4.5
"""Local memory of a unit, in that of the largest group."""
READ_CLOCKS = 3
"""Clocks of a warp for a vector that it reads from local memory."""
LOAD_CLOCKS = 7
"""Clocks of a warp for a load that it brings to local memory."""
STEP_CLOCKS = 10
"""Clocks of a warp for a step, for counting and the barrier."""
WAIT_CLOCKS = 600
"""Clocks of a step in which a group that is alone waits: for memory, for the barrier."""
CACHE_BYTES = 22
"""Bytes a clock that the caches of the device give a compute unit."""
EDGE_CLOCKS, STORE_CLOCKS = 2_500, 10
"""Clocks in which groups begin and end, and those of a group for storing a result a lane."""
LAST_SHARE = 0.7
"""How much shorter the last wave is where it has fewer groups: as if this share of it were."""
BEGIN_CLOCKS = 5_000
"""Clocks in which a launch begins and ends."""
ADDING_CLOCKS = 20_000
"""Clocks of a second launch: ten microseconds of the host."""
HOST_CLOCKS, JOIN_HOST_CLOCKS, TWO_HOST_CLOCKS = 16_000, 32_000, 60_000
"""Clocks that a launch takes the host in a row of calls, one that adds up slices, and two launches:
no product is faster."""
JOIN_CLOCKS = 2_000
"""Clocks in which a group says that it has come, and sees what others have written."""
DOUBT, DOUBT_CLOCKS = 1.08, 1_500
"""Slices of k must gain more than this: how long groups wait for each other is not in the model."""
FETCH_CLOCKS = 1_000
"""Clocks until what others have written is there."""
FETCHED = 16
"""Vectors of an item that are on their way meanwhile."""
FETCHED_BYTES = 48
"""Bytes a clock that one group reads at most."""
BYTES_A_CLOCK = 16
"""Bytes of memory for a compute unit in a clock."""
LEAST_STEPS = 8
"""Steps that a slice of k has at least; half as many where no second launch adds them up."""
MOST_SHARERS = 8
"""Groups of a unit up to which k is split to have them."""


@dataclass(frozen=True)
class Tile:
    """What a group of `Blocked` owns: the parameters by their names."""

    WORK_M: int
    WORK_N: int
    WG_M: int
    WG_N: int
    TILE_K: int

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
        return self.WG_M * self.WG_N

    @property
    def prefetched(self) -> int:
        """Elements of the next step that an item holds."""
        return (self.rows + self.columns) * self.TILE_K // self.items

    def count(self, problem: GemmProblem) -> int:
        """Return how many tiles a product has."""
        return ceil_divide(problem.m, self.rows) * ceil_divide(problem.n, self.columns)

    def local_bytes(self, buffers: int, gap: int, itemsize: int) -> int:
        """Return the bytes of local memory of its tiles, whose lines have a gap between them."""
        return buffers * self.TILE_K * (self.rows + self.columns + 2 * gap) * itemsize


TILES = tuple(
    Tile(*shape)
    for shape in (
        (16, 8, 4, 32, 8),
        (16, 8, 4, 16, 16),
        (16, 8, 8, 8, 16),
        (16, 8, 8, 16, 8),
        (8, 8, 8, 16, 16),
        (8, 8, 8, 16, 8),
        (8, 8, 16, 16, 8),
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
"""Those of GPUs, large ones first."""


def load_widths(tile: Tile, problem: GemmProblem, device: Device) -> tuple[int, int]:
    """Return how many elements of each factor to load at once: powers of two.

    A row in memory is whole vectors of them, and so are its part in the tile and the share of an
    item. So are the lines of the tile in local memory, whose gaps are vectors of the device.
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
def best_tiles(problem: GemmProblem, device: Device) -> tuple[tuple[Tile, int], ...]:
    """Return the tiles that fit the device, each with its slices of k, the best first."""
    found = _of_cpu(problem, device) if device.kind == "cpu" else _of_gpu(problem, device)
    return tuple(found)


def _fits(tile: Tile, buffers: int, problem: GemmProblem, device: Device) -> bool:
    local = tile.local_bytes(buffers, vector_width(problem, device), problem.sum_type.itemsize)
    return tile.items <= group_limit(device) and local <= device.capabilities.local_memory


# ------------------------------------------------------------------------ CPUs


def _of_cpu(problem: GemmProblem, device: Device) -> list[tuple[Tile, int]]:
    """Return tiles that live in the second cache; the best gives every unit work.

    Items run one after the other, with as many sums as a core has registers, in long steps; none is
    much longer than k.
    """
    columns = max(1, 64 // problem.sum_type.itemsize)
    longest = max(4, 1 << max(0, problem.depth - 1).bit_length())
    tiles = [
        Tile(6, columns, side, max(1, side // 2), min(depth, longest))
        for side, depth in ((16, 128), (8, 128), (4, 64), (2, 32), (1, 16), (1, 4))
    ]
    tiles = [tile for tile in tiles if _fits(tile, 1, problem, device)]

    def fills(tile: Tile) -> bool:
        area = tile.rows * tile.columns * tile.count(problem)
        groups = tile.count(problem) * problem.batch
        return groups >= 2 * device.compute_units and area <= 2 * problem.m * problem.n

    tiles.sort(key=lambda tile: not fills(tile))
    if tiles and not fills(tiles[0]):
        tiles.sort(key=lambda tile: tile.rows * tile.columns)
    return [(tile, 1) for tile in tiles]


# ------------------------------------------------------------------------ GPUs


def _of_gpu(problem: GemmProblem, device: Device) -> list[tuple[Tile, int]]:
    """Return tiles and slices of k by the time they take."""
    times = {
        (tile, splits): _time(tile, splits, problem, device)
        for tile in TILES
        if _registers(tile, problem, device) <= MOST_REGISTERS and _fits(tile, 2, problem, device)
        for splits in _splits(tile, problem, device)
    }
    return sorted(times, key=lambda choice: times[choice])


def _words(problem: GemmProblem) -> int:
    return max(1, problem.sum_type.itemsize // 4)


def _loads(tile: Tile, problem: GemmProblem, device: Device) -> int:
    """Return how many loads an item makes in a step."""
    of_a, of_b = load_widths(tile, problem, device)
    a_elements, b_elements = tile.rows * tile.TILE_K, tile.columns * tile.TILE_K
    return a_elements // tile.items // of_a + b_elements // tile.items // of_b


def _registers(tile: Tile, problem: GemmProblem, device: Device) -> int:
    """Return about how many registers an item needs."""
    elements = tile.WORK_M * tile.WORK_N + tile.WORK_M + tile.WORK_N + tile.prefetched
    addresses = LOAD_REGISTERS * _loads(tile, problem, device)
    return _words(problem) * elements + addresses + OWN_REGISTERS


def _groups_of_unit(tile: Tile, problem: GemmProblem, device: Device) -> int:
    """Return about how many groups a compute unit holds."""
    items = round_up(tile.items, WARP)
    registers = min(MOST_REGISTERS, _registers(tile, problem, device))
    local = tile.local_bytes(2, vector_width(problem, device), problem.sum_type.itemsize)
    room = int(LOCAL_MEMORIES * device.capabilities.local_memory)
    limits = REGISTERS // (items * registers), MOST_ITEMS // items, room // local
    return max(1, min(MOST_GROUPS, *limits))


def _splits(tile: Tile, problem: GemmProblem, device: Device) -> Iterator[int]:
    """Yield slices of k with which every unit has a group, two, or as many as it holds."""
    yield 1
    groups = max(1, tile.count(problem) * problem.batch)
    least = LEAST_STEPS // (2 if device.capabilities.visible_writes else 1)
    most = problem.depth // (least * tile.TILE_K)
    for held in range(1, min(MOST_SHARERS, _groups_of_unit(tile, problem, device)) + 1):
        splits = held * device.compute_units // groups
        if 2 <= splits <= most:
            yield splits


def _time(tile: Tile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return about how many clocks a product takes in a row of calls, for comparison."""
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
    """Return the time of two things at once: that of the longer one, or more if both are long."""
    return float((one**3 + other**3) ** (1 / 3))


def _clocks(tile: Tile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of all waves."""
    units, held = device.compute_units, _groups_of_unit(tile, problem, device)
    full, rest = divmod(tile.count(problem) * problem.batch * splits, units * held)
    whole = _wave(tile, splits, held, problem, device) if full else 0.0
    last = _wave(tile, splits, ceil_divide(rest, units), problem, device) if rest else 0.0
    if full and rest:  # units do not begin their last groups together, nor share them evenly
        last = LAST_SHARE * last + (1 - LAST_SHARE) * whole
    return full * whole + last


def _wave(tile: Tile, splits: int, held: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks in which compute units do so many groups each."""
    steps = ceil_divide(problem.depth, splits * tile.TILE_K)
    own = _step(tile, problem, device)
    warps = round_up(tile.items, WARP) / LANES
    nbytes = (tile.rows + tile.columns) * tile.TILE_K * problem.dtype.itemsize
    shared = held * _together(own * warps, nbytes / CACHE_BYTES)
    step = _together(shared, own * max(1.0, warps) + WAIT_CLOCKS)
    store = STORE_CLOCKS * _words(problem) * tile.rows * tile.columns / LANES
    return steps * step + EDGE_CLOCKS + held * store


def reduces_in_launch(tile: Tile, splits: int, problem: GemmProblem, device: Device) -> bool:
    """Return whether the last group of a tile adds up its slices, and no second launch."""
    if not device.capabilities.visible_writes:
        return False
    return _joining(tile, splits, problem, device) <= _adding(splits, problem, device)


def _joining(tile: Tile, splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks in which the last groups of all tiles add up their slices."""
    own = splits * tile.WORK_M * tile.WORK_N * problem.sum_type.itemsize
    rounds = ceil_divide(tile.count(problem) * problem.batch, device.compute_units)
    trips = ceil_divide(own, FETCHED * VECTOR_BYTES)
    return JOIN_CLOCKS + max(trips * FETCH_CLOCKS, rounds * own * tile.items / FETCHED_BYTES)


def _adding(splits: int, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of a second launch that adds up all slices."""
    sums = problem.batch * problem.m * problem.n
    nbytes = 2 * splits * sums * problem.sum_type.itemsize
    return ADDING_CLOCKS + nbytes / (BYTES_A_CLOCK * device.compute_units)


def _step(tile: Tile, problem: GemmProblem, device: Device) -> float:
    """Return the clocks of a step of one warp."""
    words = _words(problem)
    # Products of complex numbers are four; those of doubles count as two, or take longer anyway.
    products = tile.WORK_M * tile.WORK_N * (words * 2 if problem.is_complex else words)
    reads = max(2.0, (tile.WORK_M + tile.WORK_N) * words / 4)
    loads = LOAD_CLOCKS * _loads(tile, problem, device)
    return tile.TILE_K * (products + READ_CLOCKS * reads) + loads + STEP_CLOCKS
