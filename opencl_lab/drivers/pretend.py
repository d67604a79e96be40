"""Limits of devices that are not here, put on PoCL's processor: for tests of what is done there.

With ``OCLAB_PRETEND=mali``, or ``oclab --pretend mali``, PoCL's device is listed as a GPU of that
name, and other devices are not. Its record has the limits of such a GPU, so that plans are made,
checked and run within them. Some limits are those of the driver, too: PoCL refuses larger
work-groups, and a program that names a type or function that the device lacks does not build.

Only limits can be pretended. What PoCL cannot do is not promised, and neither speed nor the bugs of
other drivers are seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.drivers.processes import variables
from opencl_lab.drivers.verdicts import corrected

if TYPE_CHECKING:  # the command line needs the names alone
    from opencl_lab.core.device import Capabilities, Device

VARIABLE = "OCLAB_PRETEND"
GROUP_VARIABLE = "POCL_MAX_WORK_GROUP_SIZE"
"""With it PoCL refuses larger work-groups."""
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DOUBLES = ("double", *(f"double{count}" for count in (2, 3, 4, 8, 16)))
LONG_ATOMICS = tuple(
    f"atom_{name}"
    for name in ("add", "sub", "xchg", "inc", "dec", "cmpxchg", "min", "max", "and", "or", "xor")
)


@dataclass(frozen=True)
class PretendedLimits:
    """What a device reports; memory in bytes. The shape of its work-groups is that of `items`."""

    name: str
    vendor: str
    units: int
    group: int
    items: int
    multiple: int
    local: int
    constant: int
    memory: int
    allocation: int
    native_vector: int = 4
    fp64: bool = False
    fp16: bool = False
    int64_atomics: bool = False
    unified: bool = True
    registers: int = 0
    sub_group: int = 0


LIMITS = {
    "mali": PretendedLimits(
        "Mali-G52", "ARM", 2, 384, 384, 8, 32 * KIB, 64 * KIB, 2 * GIB, 512 * MIB,
        fp16=True, int64_atomics=True,
    ),
    "adreno": PretendedLimits(
        "Adreno 750", "QUALCOMM", 6, 1024, 1024, 64, 32 * KIB, 64 * KIB, 5814714368, GIB,
        fp16=True,
    ),
    "apple": PretendedLimits(
        "Apple M1", "Apple", 8, 256, 256, 32, 32 * KIB, GIB, 5726623061, GIB,
    ),
    "amd-gcn": PretendedLimits(
        "Radeon RX 580", "Advanced Micro Devices", 36, 256, 1024, 64, 32 * KIB, 64 * KIB,
        8 * GIB, 4244635648,
        fp64=True, fp16=True, int64_atomics=True, unified=False, registers=128,
    ),
    "amd-rdna": PretendedLimits(
        "Radeon RX 6800 XT", "Advanced Micro Devices", 36, 256, 1024, 32, 64 * KIB, 14588628168,
        17163091968, 14588628168,
        fp64=True, fp16=True, int64_atomics=True, unified=False, registers=128,
    ),
    "intel-xe": PretendedLimits(
        "Iris Xe", "Intel", 96, 512, 512, 64, 64 * KIB, 4294959104, 16 * GIB, 4294959104,
        fp16=True, int64_atomics=True, registers=116,
    ),
    "intel-hpc": PretendedLimits(
        "Data Center GPU Max 1100", "Intel", 448, 1024, 1024, 64, 128 * KIB, 4294959104,
        48 * GIB, 4294959104,
        fp64=True, fp16=True, int64_atomics=True, unified=False, registers=116, sub_group=16,
    ),
}  # fmt: skip
"""Devices as reports of `clinfo` describe them. Their native vectors of float have one element."""


def asked() -> PretendedLimits | None:
    """Return the limits of the device that the environment names, or None.

    Raises
    ------
    DeviceNotFound
        If there are no limits of that name.
    """
    name = os.environ.get(VARIABLE, "").strip().lower()
    if name and name not in LIMITS:
        raise DeviceNotFound(f"{VARIABLE}={name} is none of {', '.join(LIMITS)}")
    return LIMITS.get(name)


def can_pretend(device: Device) -> bool:
    """Return whether limits can be put on a device: PoCL's processor."""
    return device.kind == "cpu" and "PoCL" in device.platform_version


def pretended(device: Device, limits: PretendedLimits) -> Device:
    """Return the record of a device with the limits of another one.

    Its key is its own, so nothing that was tuned or found for the device itself applies to it. What
    `oclab doctor` finds on it lifts no limit.
    """
    named = replace(
        device,
        name=f"{limits.name}, pretended by {device.name}",
        kind="gpu",
        vendor=f"{limits.vendor}, pretended",
        platform=f"{device.platform} as {limits.name}",
        compute_units=limits.units,
        global_memory=min(limits.memory, device.global_memory),
        max_allocation=min(limits.allocation, device.max_allocation),
        local_memory=min(limits.local, device.local_memory),
        constant_memory=min(limits.constant, device.constant_memory),
        max_work_group=min(limits.group, device.max_work_group),
        max_work_items=tuple(min(limits.items, items) for items in device.max_work_items),
        work_group_multiple=limits.multiple,
        native_vector_bytes=limits.native_vector,
        unified_memory=limits.unified,
        shared_pointers=False,
        capabilities=_least(device.capabilities, limits),
    )
    found = corrected(named)
    return replace(found, capabilities=_least(found.capabilities, limits), pretended=True)


def _least(found: Capabilities, limits: PretendedLimits) -> Capabilities:
    """Return what both have; a driver promises nothing about groups that wait for others."""
    from opencl_lab.core.device import Capabilities

    promised = Capabilities(
        fp64=limits.fp64,
        fp16=limits.fp16,
        int64_atomics=limits.int64_atomics,
        max_work_group=limits.group,
        local_memory=limits.local,
        max_allocation=limits.allocation,
    )
    both = ((item.name, getattr(found, item.name)) for item in fields(Capabilities))
    least = {name: min(value, getattr(promised, name)) for name, value in both}
    told = {"item_registers": limits.registers, "sub_group": limits.sub_group}
    return Capabilities(**{**least, **told})


@contextmanager
def limited_groups() -> Iterator[None]:
    """Let PoCL, if it starts in this context, refuse groups that the pretended device lacks."""
    limits = asked()
    if limits is None or GROUP_VARIABLE in os.environ:
        yield
        return
    with variables({GROUP_VARIABLE: str(limits.group)}):
        yield


def without_lacking(text: str) -> str:
    """Return a program that does not build if it uses what the pretended device lacks."""
    limits = asked()
    if limits is None:
        return text
    lacking = (*(() if limits.fp64 else DOUBLES), *(() if limits.int64_atomics else LONG_ATOMICS))
    return f"#pragma GCC poison {' '.join(lacking)}\n#line 1\n{text}" if lacking else text
