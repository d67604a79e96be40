"""What the algorithms here share: rows that groups read by parts, and how large groups are."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.space import Config, Constraint, Parameter

__all__ = [
    "INDEX_LIMIT",
    "PARAMETERS",
    "POWER",
    "check_group",
    "index_of",
    "largest_group",
    "parts_of",
]

INDEX_LIMIT = 1 << 31
"""Keys of a row from which counts and places have 64 bits."""
LARGEST_PART = 1 << 31
"""Keys that the counts of a part can hold."""
GROUPS = {"cpu": 4}
OTHER_GROUPS = 8
"""Groups for a compute unit: as many as GPUs run at once; CPUs share them out."""
PARAMETERS = (
    Parameter("WG_SIZE", (1, 64, 128, 256, 512), "items in a group, a power of two; CPUs: 1"),
    Parameter("ITEM_KEYS", (4, 8, 16, 64, 128), "neighbours that an item looks at together"),
)
POWER = (
    Constraint(
        lambda c: (
            c.integer("WG_SIZE") > 0 and not c.integer("WG_SIZE") & (c.integer("WG_SIZE") - 1)
        ),
        "WG_SIZE must be a power of two",
    ),
    Constraint(
        lambda c: (
            c.integer("ITEM_KEYS") >= 2 and c.integer("ITEM_KEYS") * c.integer("WG_SIZE") < 1 << 16
        ),
        "ITEM_KEYS must be at least 2, and a group have fewer than 65,536 keys",
    ),
)


def index_of(n: int) -> tuple[bool, Any]:
    """Return whether rows of `n` keys need counts of 64 bits, and the NumPy type of these."""
    wide = n >= INDEX_LIMIT
    return wide, np.uint64 if wide else np.uint32


def largest_group(device: Device) -> int:
    """Return the items of a group: one on CPUs, else a power of two up to 256."""
    if device.kind == "cpu":
        return 1
    return min(256, 1 << (max(device.capabilities.max_work_group, 1).bit_length() - 1))


def parts_of(n: int, rows: int, tile: int, device: Device) -> int:
    """Return into how many parts of whole tiles a row is cut."""
    groups = GROUPS.get(device.kind, OTHER_GROUPS) * device.compute_units
    most = -(-n // tile)
    least = -(-n // LARGEST_PART)
    return max(min(groups // max(rows, 1), most), least, 1)


def check_group(config: Config, device: Device) -> None:
    """Raise `InvalidConfig` if groups are no whole warps where these add up by shuffles."""
    if device.capabilities.inline_ptx and config.integer("WG_SIZE") % 32:
        raise InvalidConfig("WG_SIZE must be a multiple of 32 on this device")
