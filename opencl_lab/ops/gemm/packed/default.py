"""The built-in configuration of the product by packed panels, from a model of its time.

Times are cycles of one thread. The model has the arithmetic, the cost of packing, stores and
launches, and how evenly threads share the tiles; it is meant to order configurations, no more. Its
constants, sizes of caches among them, were fitted on Intel Xeons with AVX-512, of 2 and of 16
cores, with PoCL. Of a device it knows the units, vectors and local memory only.

The block of sums and TILE_K are chosen first (`smallest`). Then the model chooses among `_forms`
where to pack, the size of tiles, and the slices of k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import largest_power
from opencl_lab.core.plan import ceil_divide, passed_room, round_up
from opencl_lab.ops.gemm.packed.tiles import Form, Tasks
from opencl_lab.ops.gemm.problem import GemmProblem

MANY_REGISTERS = ((8, 3, 1.0), (6, 4, 0.98), (5, 5, 0.96), (12, 2, 0.9), (14, 1, 0.75))
FEW_REGISTERS = ((6, 2, 1.0), (4, 3, 0.98), (12, 1, 0.8))
"""Rows, vectors and speed of blocks of sums for 32 and for 16 vector registers."""
TILE_K = 384
"""Numbers of a row of A in a k tile: sums are seldom stored, which costs as much for any type.
Panels of B exceed the L1 cache, blocks of A stay in the L2 cache."""
BLOCK_BYTES = 288 << 10
"""Bytes of a block of A, which has to stay in the L2 cache beside panels of B."""
SLAB_BYTES = 3 << 18
"""The same where each item packs B, which tiles with more rows need less often. A is read in
place then, and may come from the L3 cache."""
ROW_BYTES = 8 << 10
"""Bytes of a row of a tile, which comes back to the L2 cache for each k tile."""
LAUNCH, PHASE, ITEM = 60_000, 10_000, 1_500
"""Cycles that a launch, a phase of a launch and a tile cost."""
MOVE, TURN = 1.2, 1.8
"""Cycles to pack four bytes in the order of memory, and transposed; ahead it costs twice that."""
UNEVEN = 0.35
"""How much longer the slowest of many threads takes for a tile, as cores are not equally free."""
SHARED = 0.7
"""How much more it costs to pack ahead, for each thread beyond the second that works on a strip
of tiles. Fitted to whole products on 16 threads: with 1, 2, 4 and 8 strips N = 2048 took
16.0, 13.4, 12.8 and 12.4 ms, though packing alone took as long in all of them."""
NEAR, NEAR_BYTES = 0.35, 3 << 19
"""The fraction of that cost that is left where B is small enough to stay in the L2 cache."""
STRIDED, SPREAD, PAGED = 1.2, 1.35, 2.5
"""How much longer the arithmetic takes where B is read in place: its rows lie in different cache
lines, in more pages than the TLB holds, or in a page each."""
PAGES = 64
"""Pages that the TLB holds."""
PAGE_BYTES = 4096
ALIASED_BYTES, ALIASED = 2048, 1.15
"""Rows of A whose distance is a multiple of so many bytes share a few sets of a cache: they are
copied, or the arithmetic takes so much longer."""


def smallest(problem: GemmProblem, device: Device) -> Form:
    """Return the built-in form with the smallest tiles."""
    real = problem.real_type.itemsize
    line = max(1, problem.n) * problem.components
    lanes = min(16, max(2, device.native_vector_bytes // real))
    width = max(2, min(lanes, largest_power(2 * line - 1)))
    rows, vectors = _shape(problem.m, ceil_divide(line, width), device)
    return Form.of_values(
        problem,
        rows=rows,
        vectors=vectors,
        width=width,
        panels_tile_m=1,
        panels_tile_n=1,
        tile_k=TILE_K // problem.components,
        unroll=2,
        pack_a=problem.trans_a,
        pack_b="panel",
        products=1,
        splits=1,
    )


def built_in(problem: GemmProblem, device: Device) -> Form:
    """Return the form of the least time by the model."""
    least = smallest(problem, device)
    best = min(_forms(least, device), key=lambda form: _cycles(form, device))
    return _with_products(best, device)


def _shape(m: int, vectors_n: int, device: Device) -> tuple[int, int]:
    """Return rows and vectors of a block of sums that is fast and wastes little at the edges."""
    shapes = MANY_REGISTERS if device.native_vector_bytes >= 64 else FEW_REGISTERS

    def speed(shape: tuple[int, int, float]) -> float:
        rows, vectors, speed = shape
        filled = round_up(max(1, m), rows) * round_up(vectors_n, vectors)
        return speed * max(1, m) * vectors_n / filled

    rows, vectors, _ = max(shapes, key=speed)
    panels = ceil_divide(max(1, m), rows)
    return (ceil_divide(max(1, m), panels) if panels <= 4 else rows), vectors


def _is_aliased(problem: GemmProblem) -> bool:
    return not problem.trans_a and problem.k * problem.dtype.itemsize % ALIASED_BYTES == 0


def _counts(total: int, most: int, units: int) -> list[int]:
    """Return sizes of tiles that divide `total` panels evenly, at most `most` panels each."""
    fewest = ceil_divide(total, max(1, most))
    numbers = {*range(fewest, fewest + 8), *(times * units for times in range(1, 7))}
    return sorted({ceil_divide(total, number) for number in numbers if number >= fewest})


def _forms(least: Form, device: Device) -> Iterator[Form]:
    """Yield the forms that may be best."""
    problem, units = least.problem, device.compute_units
    local = passed_room(device) - least.local_bytes
    most_n = max(1, ROW_BYTES // (least.panel * least.real_type.itemsize))
    panels_m = ceil_divide(problem.m, least.rows) or 1
    copies = {least.pack_a, least.pack_a or _is_aliased(problem)}
    for pack_a, pack_b in product(sorted(copies), ("none", "panel", "ahead")):
        room = SLAB_BYTES if pack_b == "panel" and not pack_a else BLOCK_BYTES
        room = min(room, local) if pack_a else room
        for size_m in _counts(panels_m, max(1, room // least.block_bytes), units):
            for size_n in _counts(least.panels_n or 1, most_n, units):
                tiles = ceil_divide(panels_m, size_m) * ceil_divide(least.panels_n or 1, size_n)
                splittable = tiles < units and problem.depth > 2 * least.tile_k
                for splits in (1, units, 2 * units) if splittable and problem.batch == 1 else (1,):
                    form = replace(
                        least, panels_tile_m=size_m, panels_tile_n=size_n, pack_b=pack_b,
                        splits=splits, pack_a=pack_a,
                    ).fitted()  # fmt: skip
                    if form.pack_b == pack_b:
                        yield form


def _cycles(form: Form, device: Device) -> float:
    """Return about how many cycles a form takes, without its first launch."""
    problem, units = form.problem, device.compute_units
    tasks, late = Tasks.of(form, units), UNEVEN * (1 - 1 / units) ** 2
    columns = min(form.tile_n, form.panels_n * form.panel)
    tile = last = _tile_cycles(form, form.tile_m, columns, device)
    if tasks.claimed:
        filled = round_up(problem.m, form.rows)
        whole = min(filled, tasks.down * form.tile_m)
        cycles = whole / form.tile_m * tile
        if tasks.tail_down:
            last = _tile_cycles(form, tasks.tail_m, columns, device)
            cycles += (filled - whole) / tasks.tail_m * last
        cycles *= form.layers * form.products * form.panels_n / form.panels_tile_n
        # A thread that claims the last tile keeps the others waiting, about half of it on average.
        many = tasks.number > units
        cycles = cycles / units + last / 2 * (1 + late) if many else last * (1 + late)
    else:
        cycles = ceil_divide(tasks.number, units) * form.products * tile * (1 + late)
    if form.pack_b == "ahead":
        pack = _pack_cycles(form)
        numbers = problem.depth * form.components * form.panels_n * form.panel
        readers = max(2.0, units / max(1, form.tiles_n))
        cycles += PHASE + numbers * pack * (2 + SHARED * (readers - 2)) / units
    if form.splits > 1:
        cycles += LAUNCH + 2.0 * problem.m * problem.n * form.components * form.splits / units
    return cycles


def _tile_cycles(form: Form, rows: int, columns: int, device: Device) -> float:
    """Return about how many cycles a tile of so many rows and real columns takes."""
    problem = form.problem
    depth = ceil_divide(problem.depth, form.splits) * form.components
    lanes = max(1, min(device.native_vector_bytes // form.real_type.itemsize, form.width))
    blocks = ceil_divide(rows, form.rows) * ceil_divide(columns, form.panel)
    k_tiles = max(1, ceil_divide(depth, form.tile_k * form.components))
    # An addition has a latency of four cycles, and two start per cycle.
    tile = blocks * depth * max(4.0, form.rows * form.vectors / 2)
    tile *= _stride_factor(form) if form.pack_b == "none" else 1.0
    tile += blocks * k_tiles * (2 * form.rows * form.vectors + 40)
    if not form.pack_a and _is_aliased(problem):
        tile *= ALIASED
    near = NEAR if problem.k * problem.n * problem.dtype.itemsize <= NEAR_BYTES else 1.0
    tile += depth * columns * (_pack_cycles(form) * near if form.pack_b == "panel" else 4 / lanes)
    return tile + depth * rows * (MOVE if form.pack_a else 0.5) + ITEM


def _pack_cycles(form: Form) -> float:
    """Return how many cycles it takes to pack a number of B."""
    return (TURN if form.problem.trans_b else MOVE) * form.real_type.itemsize / 4


def _stride_factor(form: Form) -> float:
    if form.panels_n <= 2:
        return 1.0
    row = form.problem.n * form.real_type.itemsize
    if row >= PAGE_BYTES:
        return PAGED
    return SPREAD if row * min(form.problem.depth, form.tile_k) > PAGES * PAGE_BYTES else STRIDED


def _with_products(form: Form, device: Device) -> Form:
    """Give each task enough products of a stack to be worth claiming, and all units some."""
    one = _cycles(replace(form, problem=replace(form.problem, batch=1, stacks=())), device)
    shared = form.problem.batch * form.tiles_m * form.tiles_n // (4 * device.compute_units)
    worth = int(8 * LAUNCH / max(1.0, one))
    return replace(form, products=largest_power(min(256, worth, shared))) if shared > 1 else form
