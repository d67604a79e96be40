"""The reports that `oclab doctor` stores for devices, and the corrections that they imply."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from opencl_lab.core.paths import cache_dir, record_name
from opencl_lab.core.records import read_sealed, sound_fields

if TYPE_CHECKING:
    from opencl_lab.core.device import Device


class Probed(Struct, kw_only=True):
    """The fields of a report that are read, of any version; each finding is checked separately."""

    key: str
    capabilities: Any = None
    peaks: Any = None
    small_calls: Any = None


class ProbeReport(Probed, kw_only=True):
    """A report as it is written; older versions wrote no peaks."""

    version: str
    date: str
    capabilities: dict[str, Any]
    probes: list[Any]


def probe_file(key: str) -> Path:
    """Return the file in which `oclab doctor` stores what it found on the device `key`."""
    return cache_dir("doctor", record_name(key))


def stored_report(key: str) -> Probed | None:
    """Return the report of the device `key`; None if there is none that can be read."""
    report = read_sealed(Probed, probe_file(key))
    return report if report is not None and report.key == key else None


def corrected(device: Device) -> Device:
    """Return `device` with the findings of an earlier `oclab doctor`, if there are any."""
    from opencl_lab.core.device import Capabilities, SmallCalls  # elsewhere pyopencl may be missing

    report = stored_report(device.key)
    if report is None:
        return device
    known = sound_fields(Capabilities, report.capabilities)
    calls = {}
    if isinstance(report.small_calls, dict):
        for operation, values in report.small_calls.items():
            with suppress(TypeError):  # a field is missing
                calls[operation] = SmallCalls(**sound_fields(SmallCalls, values))
    capabilities = replace(device.capabilities, **known)
    return replace(device, capabilities=capabilities, measured_calls=calls)
