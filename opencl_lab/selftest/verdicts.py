"""What the self-test found: families of kernels, and devices that are known to be good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from opencl_lab._version import __version__
from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError
from opencl_lab.core.records import parsed, typed
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.pocl_builds import unknown_build
from opencl_lab.drivers.pocl_target import library_target
from opencl_lab.drivers.verdicts import KeptVerdicts, Verdict, store, stored

MODE = "OCLAB_SELFTEST"
"""The environment variable: ``off``, ``quick`` or ``full``."""


class Family(NamedTuple):
    """Kernels that are right or wrong together: an algorithm, for numbers of one width.

    With `wide`, its numbers have eight bytes: a driver may have trouble with these alone.
    """

    operation: str
    algorithm: str
    wide: bool = False

    def __str__(self) -> str:
        wide = " for numbers of 8 bytes" if self.wide else ""
        return f"{self.operation} by {self.algorithm}{wide}"

    @property
    def key(self) -> str:
        """The name of the family in files."""
        return f"{self.operation}/{self.algorithm}" + "/8" * self.wide


DEVICE = Family("device", "basics")
"""Loops, barriers and copies, without which nearly every kernel would be wrong."""


@dataclass(frozen=True)
class Shipped:
    """A device that is known to be good, and how that is known."""

    identity: str
    tested: str


def identity(device: Device) -> str:
    """Return what results depend on: the driver, and the processor that it compiles for.

    Drivers for CPUs compile for the features of a processor, whatever it is called, so those of
    x86 are told apart by the features that PoCL also goes by. NVIDIA's GPUs are told apart by
    their compute capability, other devices by name. So are those of unknown builds of PoCL, which
    compile for what LLVM calls the processor.
    """
    known = device.kind == "cpu" and not unknown_build(device)
    features = library_target() if known else None
    compiled_for = features or (device.architecture if device.compute_capability else device.name)
    width = str(device.native_vector_bytes) if device.kind == "cpu" else ""
    side = "serial" if device.is_serial else ""
    parts = (device.kind, device.platform_version, device.driver, compiled_for, width, side)
    return " | ".join(parts)


@cache
def shipped() -> Mapping[str, Shipped]:
    """Return the devices that are known to be good, by identity."""
    text = (files("opencl_lab.selftest") / "data/devices.json").read_text(encoding="utf-8")
    return {one.identity: one for one in typed(list[Shipped], parsed(text))}


def kept(device: Device) -> dict[str, Verdict]:
    """Return the verdicts that were kept on a device and its driver, by the families' keys."""
    found = stored(device.key)
    return found.families if found.identity == identity(device) else {}


def is_current(verdict: Verdict, templates: tuple[str, ...], full: bool) -> bool:
    """Return whether a verdict is about the kernels of today, and not about fewer trials."""
    if verdict.version != __version__ or (full and not verdict.full):
        return False
    try:
        return verdict.digest == kernel_digest(templates)
    except BuildError:  # one is not there any more
        return False


def keep(device: Device, found: Mapping[Family, Verdict] | None) -> Path | None:
    """Add verdicts to those kept, or drop all; return the file, or None if it cannot be written."""
    alike = identity(device)

    def change(known: KeptVerdicts) -> None:
        families = known.families if found is not None and known.identity == alike else {}
        more = {family.key: verdict for family, verdict in (found or {}).items()}
        known.identity, known.families = alike, families | more

    return store(device.key, change)
