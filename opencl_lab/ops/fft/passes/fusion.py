"""Two steps of a transform in one launch, whose groups take tickets.

The second step follows the first so closely that it reads the results of the first from the
device's cache. ``fused_steps.mako`` draws the order of the groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.passes.splits import Limits, paired_columns, worth_fusing
from opencl_lab.ops.fft.passes.steps import Step

LOOK_AHEAD_POINTS = 1 << 12
"""Points per compute unit by which the first of two steps is ahead: as many as a unit works on."""
TICKET_BYTES = 4
LEAST_TIMES = 4
"""Fewest transforms of a fused launch, in multiples of those by which the first step is ahead."""


@dataclass(frozen=True)
class Fusion:
    """How two steps share a launch."""

    limits: Limits  # by which both are planned
    # For each step: columns of a group, and groups of a whole transform.
    columns: tuple[int, int]
    tiles: tuple[int, int]
    transforms: int  # number of transforms
    look_ahead: int  # by how many transforms the first step is ahead


def can_fuse(device: Device) -> bool:
    """Return whether two steps can share a launch.

    CPUs cannot: PoCL's compiler, which turns the code between barriers into loops, generates wrong
    code for some barriers in conditions.
    """
    able = device.capabilities.forward_progress and device.capabilities.visible_writes
    return able and device.kind != "cpu"


def fusion_of(
    steps: Sequence[Step], config: Config, limits: Limits, device: Device
) -> Fusion | None:
    """Return how two steps of rows share a launch, or None if they should not.

    The parameter FUSED may ask for it wherever possible, or never.
    """
    if (
        len(steps) != 2
        or steps[1].orders != ("rows", "columns")
        or config["FUSED"] == "never"
        or not can_fuse(device)
    ):
        return None
    first, second = steps[0].shape, steps[1].shape
    assert first is not None and second is not None  # both read or write columns
    exchanges = ("split", "two-phase") if config["EXCHANGE"] == "auto" else (limits.exchange,)
    room = limits.local_memory - TICKET_BYTES
    limited = [replace(limits, exchange=exchange, local_memory=room) for exchange in exchanges]
    found = [(*paired_columns(first, second, each), each) for each in limited]
    if config["FUSED"] == "auto":
        found = [each for each in found if worth_fusing(first, second, *each[1:])]
    cost, columns, chosen = min(found, key=lambda each: each[0], default=(math.inf, (1, 1), limits))
    tiles = ceil_divide(first.lanes, columns[0]), ceil_divide(second.lanes, columns[1])
    look_ahead = 1 + round(device.compute_units * LOOK_AHEAD_POINTS / (first.n * first.lanes))
    countable = max(first.times, tiles[0]) * sum(tiles) < 1 << 32
    if math.isinf(cost) or first.times < LEAST_TIMES * look_ahead or not countable:
        return None
    return Fusion(chosen, columns, tiles, first.times, look_ahead)
