"""What the algorithms share: slices of rows, one per work-group, and the size of groups."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import largest_power, power_of_two
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.space import Config, Constraint, Parameter

LARGEST_SLICE = 1 << 31
"""Most keys of a slice, as its counts have 32 bits."""
GROUPS = {"cpu": 4}
OTHER_GROUPS = 8
"""Groups per compute unit: as many as a GPU runs at once; on CPUs, enough to share out evenly."""
PARAMETERS = (
    Parameter("WG_SIZE", (1, 64, 128, 256, 512), "items in a group, a power of two; CPUs: 1"),
    Parameter("ITEM_KEYS", (4, 8, 16, 64, 128), "neighbouring keys that an item reads together"),
)
POWER = (
    power_of_two("WG_SIZE"),
    Constraint(
        lambda c: (
            c.integer("ITEM_KEYS") >= 2 and c.integer("ITEM_KEYS") * c.integer("WG_SIZE") < 1 << 16
        ),
        "ITEM_KEYS must be at least 2, and a group must have fewer than 65,536 keys",
    ),
)


def largest_group(device: Device) -> int:
    """Return the items of a group: one on CPUs, else a power of two up to 256."""
    if device.kind == "cpu":
        return 1
    return largest_power(256, device.capabilities.max_work_group)


def slices_of(n: int, rows: int, tile: int, device: Device) -> int:
    """Return into how many slices of whole tiles a row is cut."""
    groups = GROUPS.get(device.kind, OTHER_GROUPS) * device.compute_units
    most = ceil_divide(n, tile)
    least = ceil_divide(n, LARGEST_SLICE)
    return max(min(groups // max(rows, 1), most), least, 1)


def check_group(config: Config, device: Device) -> None:
    """Raise `InvalidConfig` if groups are not whole warps where warps sum by shuffles."""
    if device.capabilities.inline_ptx and config.integer("WG_SIZE") % 32:
        raise InvalidConfig("WG_SIZE must be a multiple of 32 on this device")
