"""Two steps of a transform in one launch, whose groups have tickets.

The work has parts: transforms of rows, or strips of neighbouring columns. The second step of a part
follows the first so closely that it reads the results of the first from the device's cache. Few
transforms share a launch, too, as a launch takes longer than to wait for the first step.
``fused_steps.mako`` draws the order of the groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.passes.local_schedule import Tiles
from opencl_lab.ops.fft.passes.splits import (
    LINE,
    GroupLimits,
    StepShape,
    cheapest_lengths,
    factorings,
    launch_cost,
    paired_axes,
    paired_columns,
    shapes_of,
    worth_fusing,
)

LOOK_AHEAD_POINTS = 1 << 12
"""Points per compute unit by which the first of two steps is ahead: as many as a unit works on."""
TICKET_BYTES = 8
"""Local memory of the ticket of a group and of what it waited for."""
MAX_POLLS = 1 << 16
"""How often a group of the second step reads the counter of the first one before it does all of
that by itself: far more often than needed where groups make progress."""
LEAST_PARTS = 4
"""Fewest parts of a fused launch, in multiples of those by which the first step is ahead, unless
the data are few."""
FEW_BYTES = 8 << 20
"""Data that stay in the caches of a large GPU; for these a launch takes longer than to wait."""
STRIP_COLUMNS, MOST_STRIP = 32, 256
"""Columns of a part, about and at most: a row of them is a few cache lines."""
UNLIKE = 1.05
"""How much longer two steps take for each time that one has twice as many points as the other."""
CACHED = 0.9
"""Time of two steps in one launch, as a multiple of that in two, where whole cache lines move: on
an NVIDIA H100 0.84 to 0.97 for columns of 2,048 to 8,192 points, and 0.92 to 0.95 for rows."""


@dataclass(frozen=True)
class Fusion:
    """How two steps share a launch, part after part: a transform, or a strip of columns."""

    lengths: tuple[int, ...]
    limits: GroupLimits  # by which both are planned
    # For each step: columns of a group, and groups of a part.
    columns: tuple[int, int]
    tiles: tuple[Tiles, Tiles]
    parts: int
    look_ahead: int  # by how many parts the first step is ahead


def can_fuse(device: Device) -> bool:
    """Return whether two steps can share a launch.

    CPUs cannot: PoCL's compiler, which turns the code between barriers into loops, generates wrong
    code for some barriers in conditions.
    """
    sees_others = device.capabilities.forward_progress and device.capabilities.visible_writes
    return sees_others and device.kind != "cpu"


def fusion_of(
    n: int, batch: int, inner: int, config: Config, limits: GroupLimits, device: Device
) -> Fusion | None:
    """Return how two steps of transforms of length `n` share a launch, or None if they should not.

    The middle axis of batch x n x inner elements is transformed. With the parameter FUSED, two
    steps share a launch "never", or "always" if they can, whatever the estimate: there must be
    groups of equally many items, and parts enough.
    """
    if config["FUSED"] == "never" or not can_fuse(device):
        return None
    exchanges = ("split", "two-phase") if config["EXCHANGE"] == "auto" else (limits.exchange,)
    room = limits.local_memory - TICKET_BYTES
    cost, apart = cheapest_lengths(n, batch, inner, limits)
    always = config["FUSED"] == "always" and apart is not None and len(apart) > 1
    best: tuple[float, Fusion | None] = math.inf if always else cost, None
    for lengths in factorings(n, 2, limits.longest):
        for exchange in exchanges:
            limited = replace(limits, exchange=exchange, local_memory=room)
            found = _fused(n, batch, inner, lengths, always, limited)
            best = min(best, found, key=lambda each: each[0])
    return best[1]


def fusion_of_planes(
    planes: tuple[int, int, int], config: Config, limits: GroupLimits, device: Device
) -> Fusion | None:
    """Return how rows and then columns of planes share a launch, or None if they should not.

    `planes` are their number, and the lengths of their columns and rows. They are few data, for
    which a further launch takes longer than to wait for the rows.
    """
    count, m, n = planes
    if config["FUSED"] == "never" or not can_fuse(device):
        return None
    if 2 * limits.word * math.prod(planes) > FEW_BYTES:
        return None
    limits = replace(limits, local_memory=limits.local_memory - TICKET_BYTES)
    rows, columns = paired_axes(StepShape(m, n, count, True, n), n, limits)
    if not rows:
        return None
    groups = ceil_divide(m, rows), ceil_divide(n, columns)
    tiles = Tiles(groups[0], groups[0], 1), Tiles(groups[1], groups[1], 1)
    return Fusion((n, m), limits, (rows, columns), tiles, count, 1)


def _fused(
    n: int, batch: int, inner: int, lengths: tuple[int, ...], always: bool, limits: GroupLimits
) -> tuple[float, Fusion | None]:
    """Return the cost of a launch of two steps, and how they share it; infinite if they cannot."""
    first, second = shapes_of(n, batch, inner, lengths, limits.word)
    cost, columns = paired_columns(first, second, limits)
    if math.isinf(cost):
        return math.inf, None
    size = n * batch * inner
    few = 2 * limits.word * size <= FEW_BYTES
    found = _parts(first, second, columns)
    if found is None:
        return math.inf, None
    parts, tiles = found
    look_ahead = 1 + round(limits.units * LOOK_AHEAD_POINTS * parts / size)
    lines = min(columns) * 2 * limits.word >= LINE
    worth = lines if inner > 1 else worth_fusing(first, second, columns, limits)
    enough = few or ((worth or always) and parts >= LEAST_PARTS * look_ahead)
    countable = max(parts, tiles[0].groups + 1) * sum(each.groups for each in tiles) < 1 << 31
    if not (enough and countable):
        return math.inf, None
    cost *= CACHED if worth else 1.0
    cost *= UNLIKE ** abs(math.log2(first.n / second.n))
    fusion = Fusion(lengths, limits, columns, tiles, parts, min(look_ahead, parts))
    return launch_cost(size, limits) + cost, fusion


def _parts(
    first: StepShape, second: StepShape, columns: tuple[int, int]
) -> tuple[int, tuple[Tiles, Tiles]] | None:
    """Return the number of parts, and the groups of one in each step; None if there are no parts.

    Where the second step reads rows, a part is a transform. Else it is a strip of neighbouring
    columns, of a single array.
    """
    if not second.reads_columns:
        whole = ceil_divide(first.lanes, columns[0]), ceil_divide(second.lanes, columns[1])
        return first.times, (Tiles(whole[0], whole[0], 1), Tiles(whole[1], whole[1], 1))
    inner, least = second.lanes, math.lcm(*columns)
    widths = [w for w in range(least, MOST_STRIP + 1, least) if inner % w == 0]
    if not widths or first.times > 1:
        return None
    width = min(widths, key=lambda w: abs(math.log2(w / STRIP_COLUMNS)))
    tiles = [
        Tiles(rows * (width // n), width // n, inner // n)
        for n, rows in zip(columns, (first.lanes // inner, second.times), strict=True)
    ]
    return inner // width, (tiles[0], tiles[1])
