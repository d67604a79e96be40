"""Verdicts on what was tried on a device, and the file that keeps those of each device.

The self-test tries families of kernels, and `oclab doctor` what drivers claim. What the doctor has
found corrects these claims.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from opencl_lab._version import __version__
from opencl_lab.core.paths import cache_dir, locked, record_name
from opencl_lab.core.records import as_json, read_sealed, sound_fields, timestamp, write_sealed
from opencl_lab.drivers.caches import make_section

if TYPE_CHECKING:
    from opencl_lab.core.device import Device

SECTION = "verdicts"


class Verdict(Struct, frozen=True):
    """What was seen when something was tried on a device."""

    word: str
    """``ok``; ``no`` if the device need not have it, and has not; ``limited`` if less works than is
    claimed; ``broken`` if it fails; ``unknown`` if it could not be tried."""
    detail: str = ""  # what was seen, in words
    value: Any = None  # a capability, a peak, the number of trials
    seconds: float = 0.0
    digest: str = ""  # of the templates of its kernels
    full: bool = False  # whether all trials ran, or the few of a first use
    version: str = __version__
    date: str = field(default_factory=timestamp)


class KeptVerdicts(Struct):
    """The file with what is known of a device."""

    key: str
    identity: str = ""
    """What the verdicts on families depend on."""
    families: dict[str, Verdict] = {}
    found: Any = None
    """Values that the doctor's probes have found, by name; each is checked when it is used."""


def verdict_file(key: str) -> Path:
    """Return the file with what is known of the device `key`."""
    return cache_dir(SECTION, record_name(key))


def stored(key: str) -> KeptVerdicts:
    """Return what is known of the device `key`; nothing if it cannot be read."""
    kept = read_sealed(KeptVerdicts, verdict_file(key))
    return kept if kept is not None and kept.key == key else KeptVerdicts(key)


def store(key: str, change: Callable[[KeptVerdicts], None]) -> Path | None:
    """Change what is kept on a device; return the file, or None if it cannot be written."""
    path = verdict_file(key)
    with suppress(OSError):  # a full or read-only disk
        make_section(SECTION)
        with locked(path):
            kept = stored(key)
            change(kept)
            write_sealed(path, as_json(kept))
        return path
    return None


def store_found(key: str, found: dict[str, Any]) -> Path | None:
    """Keep the values that the doctor has found on a device, in place of all earlier ones."""

    def change(kept: KeptVerdicts) -> None:
        kept.found = found

    return store(key, change)


def corrected(device: Device) -> Device:
    """Return `device` with the findings of an earlier `oclab doctor`, if there are any."""
    from opencl_lab.core.device import Capabilities  # elsewhere pyopencl may be missing

    found = stored(device.key).found
    if not isinstance(found, dict):
        return device
    capabilities = replace(device.capabilities, **sound_fields(Capabilities, found))
    return replace(device, capabilities=capabilities)
