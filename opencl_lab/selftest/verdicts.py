"""What the self-test found: kept on disk for each device, or shipped for those known to be good."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from opencl_lab._version import __version__
from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError
from opencl_lab.core.paths import cache_dir, locked, record_name
from opencl_lab.core.records import as_json, parsed, read_sealed, timestamp, typed, write_sealed
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.caches import make_section
from opencl_lab.drivers.pocl_builds import unknown_build
from opencl_lab.drivers.pocl_target import library_target

SECTION = "selftest"
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
LIST = Family("device", "list")
"""Stands for listing the families that typical problems take, or all of them."""
Listed: TypeAlias = tuple[Family, tuple[str, ...]]
"""A family, and the templates of its kernels."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of the trials of one family on one device."""

    digest: str  # of the templates of its kernels
    fault: str = ""  # what is wrong, in words; empty if nothing is
    doubt: str = ""  # why it could not be tested; such a verdict is not kept
    trials: int = 0  # how many ran; none if the algorithm is not for this device
    full: bool = False  # whether all trials ran, or the few of a first use
    seconds: float = 0.0
    families: tuple[Listed, ...] = ()  # what was listed
    version: str = __version__
    date: str = field(default_factory=timestamp)


class Kept(Struct, kw_only=True):
    """The file with the verdicts on a device."""

    identity: str
    families: dict[str, Verdict]


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


def verdict_file(device: Device) -> Path:
    """Return the file in which verdicts on a device are kept."""
    return cache_dir(SECTION, record_name(device.key))


def kept(device: Device) -> dict[str, Verdict]:
    """Return the verdicts that were kept on a device and its driver, by the families' keys."""
    found = read_sealed(Kept, verdict_file(device))
    return found.families if found is not None and found.identity == identity(device) else {}


def is_current(verdict: Verdict, templates: tuple[str, ...], full: bool) -> bool:
    """Return whether a verdict is about the kernels of today, and not about fewer trials."""
    if verdict.version != __version__ or (full and not verdict.full):
        return False
    try:
        return verdict.digest == kernel_digest(templates)
    except BuildError:  # one is not there any more
        return False


def drop(device: Device) -> None:
    """Forget what was kept on a device."""
    with suppress(OSError):
        verdict_file(device).unlink(missing_ok=True)


def keep(device: Device, found: Mapping[Family, Verdict]) -> Path | None:
    """Add verdicts to those kept; return the file, or None if it cannot be written."""
    path = verdict_file(device)
    with suppress(OSError):  # a full or read-only disk: the device is tested again next time
        make_section(SECTION)
        with locked(path):
            families = kept(device) | {family.key: verdict for family, verdict in found.items()}
            write_sealed(path, as_json(Kept(identity=identity(device), families=families)))
        return path
    return None
