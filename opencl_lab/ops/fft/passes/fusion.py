"""Two steps of a transform in one launch, whose groups take tickets.

The second step follows so close behind the first that it reads what that has written from the
device's cache. ``fused_steps.mako`` shows who does what.
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
"""Points per unit by which the first of two steps in a launch is ahead: those a unit works on."""
TICKET_BYTES = 4
LEAST_TIMES = 4
"""Fewest transforms of a fused launch, in multiples of those by which the first step is ahead."""


@dataclass(frozen=True)
class Fusion:
    """How two steps share a launch."""

    limits: Limits  # by which both are planned
    # Of each step: columns of a group, and groups of a whole transform.
    columns: tuple[int, int]
    tiles: tuple[int, int]
    transforms: int  # how many there are
    look_ahead: int  # by how many transforms the first step is in front


def can_fuse(device: Device) -> bool:
    """Return whether two steps can share a launch.

    CPUs cannot: PoCL's compiler, which makes loops of what lies between barriers, makes wrong
    code of some barriers in conditions.
    """
    able = device.capabilities.forward_progress and device.capabilities.visible_writes
    return able and device.kind != "cpu"


def fusion_of(
    steps: Sequence[Step], config: Config, limits: Limits, device: Device
) -> Fusion | None:
    """Return how two steps of rows share a launch, or None if they had better not.

    FUSED may say to share always where that can be, or never.
    """
    if (
        len(steps) != 2
        or steps[1].orders != ("rows", "columns")
        or config["FUSED"] == "never"
        or not can_fuse(device)
    ):
        return None
    first, second = steps[0].shape, steps[1].shape
    assert first is not None and second is not None  # columns in, or columns out
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
