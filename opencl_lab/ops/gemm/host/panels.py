"""The tiles of a large product, and their order: pure data.

    m x n tiles of C, each of a panel of rows of A and a panel of columns of B:

           B0  B1  B2  B3        shells    0 1 4 9     each panel is used once it is copied; the
       A0  C   C   C   C                   2 3 5 10    more panels there are, the more tiles of C
       A1  C   C   C   C                   6 7 8 11    a new one adds, so that kernels soon take
       A2  C   C   C   C                  12 13 14 15  longer than copies

If both matrices fit, each is copied once, in the order of shells. If not, as many panels of one
matrix stay on the device as fit, while all panels of the other are copied in turn. If not even one
panel fits, k is cut as well, and partial sums stay on the device.

All panels have the same length, so that one program serves all: the last one overlaps the one
before it, and computes a few rows of C twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import ceil_divide, check_plan, round_up
from opencl_lab.core.wording import counted, size_text
from opencl_lab.ops.gemm.launches import buffers
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.runtime.streams import limit_of_parts
from opencl_lab.runtime.tile_schedule import Iteration, Tile
from opencl_lab.runtime.tiles import OUT_SLOTS

LEAST = 256 << 20
"""Bytes of matrices from which panels pay, since copies and kernels overlap."""
SMALL = 1 << 20
"""Bytes of matrices up to which memory limits are not checked."""
LENGTHS = tuple(1 << bits for bits in range(13, -1, -1))
"""Approximate numbers of rows and columns that tiles may have."""
ALIGNED = 32
"""Panels longer than this have a multiple of it as length."""
FEW = 8
"""Fewest pieces into which k is cut, unless they are short."""
ROOM, ROOM_ASIDE = 4, 16 << 20
"""A plan takes less than `ROOM` bytes per byte of its matrices, and `ROOM_ASIDE` bytes besides."""
BALANCE = 1000.0
"""Approximate operations in the time of copying a byte; 500 to 2000 on GPUs."""
ITERATION_BYTES = 24 << 20
"""Cost of an iteration besides its kernel, in bytes copied meanwhile: those of 0.5 ms, measured for
products in 4, 16 and 64 iterations on a GPU."""
MOST_ITERATIONS = 1 << 17
"""More iterations take minutes on any device: so small a memory limit is refused."""
SHARES = (1.0, 0.75, 0.5)
"""Shares of memory to try for tiles; the rest is for kernels."""
GROUP_ELEMENTS = 128 * 128
"""Elements of C per work-group; compute units without a work-group are idle."""
WORTH = 0.9
"""Panels are used if their expected time is below this share of the time of a single plan."""


@dataclass(frozen=True)
class Panels:
    """The division of a product into tiles."""

    problem: GemmProblem  # one product
    # Rows and columns of a tile of C, and terms that an iteration adds to each sum.
    m: int
    n: int
    k: int
    kept: str  # ``ab``: all panels stay; ``a``, ``b``: those of that matrix; empty if k is cut
    # Numbers of panels on the device.
    slots_a: int
    slots_b: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of panels along m, n and k."""
        whole = self.problem
        along_k = ceil_divide(whole.depth, max(self.k, 1)) or 1
        return ceil_divide(whole.m, self.m), ceil_divide(whole.n, self.n), along_k

    @property
    def tile_bytes(self) -> tuple[int, int, int]:
        """Bytes of a tile of A, of B and of C."""
        item = self.problem.dtype.itemsize
        return self.m * self.k * item, self.k * self.n * item, self.m * self.n * item

    @property
    def slots(self) -> dict[str, int]:
        """Number of tiles of each array on the device."""
        found = {"a": self.slots_a, "b": self.slots_b}
        found |= {"c": 2} if self.problem.beta else {}
        return found | ({"bias": 2} if self.problem.bias else {})

    @property
    def nbytes(self) -> int:
        """Bytes of all tiles on the device."""
        a, b, c = self.tile_bytes
        return self.slots_a * a + self.slots_b * b + (OUT_SLOTS + 2 * bool(self.problem.beta)) * c

    @property
    def sent(self) -> int:
        """Bytes of panels of A and B that are copied to the device."""
        a, b, _ = self.tile_bytes
        rows, columns, depth = self.counts
        times_a, times_b = {
            "ab": (1, 1),
            "b": (ceil_divide(columns, self.slots_b), 1),
            "a": (1, ceil_divide(rows, self.slots_a)),
            "": (columns, rows),
        }[self.kept]
        return depth * (times_a * rows * a + times_b * columns * b)

    def cost(self, units: int) -> float:
        """Return the estimated time, in bytes copied meanwhile; see `BALANCE`."""
        waves = max(self.m * self.n, 1) / (GROUP_ELEMENTS * units)
        kernels = self.problem.work.flops / BALANCE * math.ceil(waves) / waves
        ends = sum(self.tile_bytes)  # copies of the first inputs and the last result
        return max(self.sent, kernels) + ITERATION_BYTES * math.prod(self.counts) + ends

    def part(self, first: bool = True, last: bool = True, k: int = 0) -> GemmProblem:
        """Return the product of one iteration; it may be the first or last one of its tile."""
        whole = self.problem
        return replace(
            whole,
            m=self.m,
            n=self.n,
            k=k or self.k,
            beta=whole.beta if first else 1.0,
            bias=whole.bias if last else "",
            activation=whole.activation if last else "",
        )

    def iterations(self) -> Iterator[Iteration]:
        """Yield the iterations in order."""
        whole, depth = self.problem, self.problem.depth
        ends = [*range(self.k, depth, max(self.k, 1)), depth]
        for i, j in self._order():
            rows, columns = _bounds(i, self.m, whole.m), _bounds(j, self.n, whole.n)
            for begin, end in zip([0, *ends[:-1]], ends, strict=True):
                first, last, sums = begin == 0, end == depth, (begin, end)
                a = (sums, rows) if whole.trans_a else (rows, sums)
                b = (columns, sums) if whole.trans_b else (sums, columns)
                inputs = {"a": Tile("a", a), "b": Tile("b", b)}
                if whole.beta and first:
                    inputs["c"] = Tile("c", (rows, columns))
                if whole.bias and last:
                    inputs["bias"] = Tile("bias", (rows if whole.bias == "row" else columns,))
                yield Iteration(
                    self.part(first, last, end - begin),
                    inputs,
                    Tile("result", (rows, columns)) if last else None,
                    (self.m, self.n),
                    "" if first else "c",
                )

    def _order(self) -> Iterator[tuple[int, int]]:
        rows, columns, _ = self.counts
        if self.kept == "ab":
            for shell in range(max(rows, columns)):
                if shell < rows:
                    yield from ((shell, j) for j in range(min(shell, columns)))
                if shell < columns:
                    yield from ((i, shell) for i in range(min(shell + 1, rows)))
        elif self.kept == "a":
            yield from ((i, j) for j, i in _groups(columns, rows, self.slots_a))
        else:
            yield from _groups(rows, columns, self.slots_b if self.kept else columns)

    def __str__(self) -> str:
        tiles = math.prod(self.counts[:2])
        text = f"{counted(tiles, 'tile')} of {self.m:,} x {self.n:,}"
        pieces = self.counts[2]
        return text + (f", each in {pieces} sums of {self.k:,}" if pieces > 1 else "")


def _groups(passing: int, staying: int, slots: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs (passing, staying): `slots` stay while all others pass, back and forth."""
    for turn, begin in enumerate(range(0, staying, slots)):
        for one in range(passing)[:: -1 if turn % 2 else 1]:
            for other in range(begin, min(begin + slots, staying)):
                yield one, other


def _bounds(index: int, length: int, whole: int) -> tuple[int, int]:
    begin = min(index * length, whole - length)
    return begin, begin + length


def _even(whole: int, length: int) -> int:
    """Return a length near `length` that divides `whole` about evenly."""
    count = ceil_divide(whole, length)
    return min(round_up(ceil_divide(whole, count), ALIGNED if length > ALIGNED else 1), whole)


def panels_of(
    problem: GemmProblem,
    device: Device,
    algorithm: str,
    config: Mapping[str, Any] | None,
    limit: float,
) -> Panels | None:
    """Return the division of a product of host arrays into tiles; None if it is done at once.

    It may use `limit` bytes of device memory. Matrices of `LEAST` bytes or more are divided even
    if they fit, if that saves time.
    """
    values = tuple(sorted(config.items())) if config else ()
    try:
        hash(values)
    except TypeError:
        raise InvalidConfig(f"parameters must be numbers or words, not {config!r}") from None
    return _panels(problem, device, algorithm, values, limit)


@lru_cache(maxsize=64)
def _panels(
    problem: GemmProblem,
    device: Device,
    algorithm: str,
    values: tuple[tuple[str, Any], ...],
    limit: float,
) -> Panels | None:
    def planned(part: GemmProblem) -> float:
        return plan_bytes(part, device, algorithm, dict(values))

    nbytes = sum(buffer.nbytes for buffer in buffers(problem))
    fits = planned(problem) <= limit
    if fits and (device.unified_memory or nbytes < LEAST):
        return None
    room = limit_of_parts(device, limit)
    units = device.compute_units
    # Kernels may need memory besides the tiles.
    possible = [
        item
        for share in SHARES
        for item in _candidates(problem, share * room)
        if math.prod(item.counts) <= MOST_ITERATIONS
    ]
    for found in sorted(dict.fromkeys(possible), key=lambda item: item.cost(units)):
        own = sum(buffer.nbytes for buffer in buffers(found.part()))
        if found.nbytes + planned(found.part()) - own <= room:
            at_once = nbytes + problem.work.flops / BALANCE
            return None if fits and found.cost(units) > WORTH * at_once else found
    if fits:
        return None
    raise InvalidProblem(
        f"{size_text(room)} of device memory are too few for {problem.title}, also tile by tile; "
        "allow more"
    )


def plan_bytes(
    problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any]
) -> float:
    """Return the bytes of a plan's buffers; infinity if the device cannot take them."""
    plan = GEMM_SOLVER.plan(problem, device, algorithm, config)
    try:
        check_plan(plan, device)
    except InvalidProblem:
        return math.inf
    return plan.nbytes


def _candidates(problem: GemmProblem, room: float) -> Iterator[Panels]:
    """Yield panels that fit, not counting memory that their kernels need besides."""
    for length in LENGTHS:
        m, n = (_even(size, length) for size in (problem.m, problem.n))
        whole = Panels(problem, m, n, problem.depth, "ab", 1, 1)
        rows, columns, _ = whole.counts
        a, b, _ = whole.tile_bytes
        most_a, most_b = min(2, rows), min(2, columns)
        left = room - whole.nbytes + a + b  # bytes for panels
        if left >= rows * a + columns * b:
            yield replace(whole, slots_a=rows, slots_b=columns)
            continue
        for_a, for_b = left - most_b * b, left - most_a * a
        if for_b >= most_b * b:
            yield replace(whole, kept="b", slots_a=most_a, slots_b=_most(for_b, b, columns))
        if for_a >= most_a * a:
            yield replace(whole, kept="a", slots_b=most_b, slots_a=_most(for_a, a, rows))
        # Partial sums in float16 would be rounded.
        if problem.depth > 1 and problem.dtype.name != "float16" and left > 0:
            k = int(left // (2 * (m + n) * problem.dtype.itemsize))
            k = min(k, max(ceil_divide(problem.depth, FEW), length), problem.depth - 1)
            k = min(k, _even(problem.depth, k)) if k else 0
            if k:
                yield replace(whole, k=k, kept="", slots_a=2, slots_b=2)


def _most(room: float, each: int, count: int) -> int:
    return min(count, int(room // each)) if each else count
