"""Which OpenCL devices there are, and which one is used."""

from __future__ import annotations

import copyreg
import os
import re
import sys
import threading
import warnings
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any, TypeAlias

# First: it says why pyopencl does not load.
from opencl_lab.core.device import SERIAL, Device

# isort: split
import pyopencl as cl

from opencl_lab.core.errors import DeviceNotFound, LaunchError
from opencl_lab.core.memory import process_left
from opencl_lab.core.queues import Gate, check_process, leave_open, note_start, set_gate
from opencl_lab.core.systems import after_fork
from opencl_lab.core.wording import size_text
from opencl_lab.drivers import icd, intel, pocl_serial, pretend
from opencl_lab.drivers.driver_records import KINDS, record_of
from opencl_lab.drivers.pocl import LIBRARY, prepared_cache
from opencl_lab.drivers.processes import bound_threads, own_share, share_arena

DeviceSpec: TypeAlias = str | int | Device | None
"""Argument of `select_device`."""
SHARED_ARENA = 1 << 30  # bytes that may still be mapped, below which they are spared
START_BYTES = 160 << 20
"""Bytes that PoCL 3.0 maps when it starts, with the LLVM that it is linked with."""
SEE_HINT = "see `oclab devices`, and `oclab doctor` for what is missing"
INSTALL_HINT = (
    '`oclab doctor` says what is missing; for a CPU runtime: pip install "pyopencl[pocl]"'
)


class DeviceFallbackWarning(UserWarning):
    """Nobody asked for a CPU, but no GPU or accelerator was found."""


@dataclass(frozen=True)
class Selection:
    """A chosen device, and the reason as text."""

    device: Device
    reason: str
    fallback: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the device as JSON-able values, with the reason."""
        return {**self.device.as_dict(), "reason": self.reason}

    def __str__(self) -> str:
        return f"{self.device}: {self.reason}"


def _preference(device: Device) -> tuple[bool, int, bool, bool, int, int, int, int]:
    """Return the sort key: usable first, then by kind, simulators last, by size, by platform.

    CPU runtimes share one processor, so the faster runtime comes first, whatever size it reports.
    """
    return (
        not device.capabilities.usable,
        KINDS.index(device.kind),
        device.simulated,
        not intel.is_intel_cpu(device.kind, device.platform),
        -device.compute_units * max(device.clock, 1),
        -device.global_memory,
        device.platform_index,
        device.device_index,
    )


def _devices_of(platform: cl.Platform) -> list[cl.Device]:
    try:
        return platform.get_devices()
    except cl.Error:  # one broken driver must not hide the others
        return []


class _NoRoom(Exception):
    """PoCL would end the process, which may map too little memory now."""


@cache
def _discover() -> tuple[Device, ...]:
    check_process()
    starts = not icd.loaded(LIBRARY) and icd.pocl_libraries(os.environ)
    if starts and process_left() < START_BYTES:
        raise _NoRoom
    if process_left() < SHARED_ARENA:
        share_arena()
    note_start()
    with prepared_cache(), pretend.limited_groups(), own_share():
        with bound_threads():  # before the loader starts PoCL
            sides = pocl_serial.start()
        try:
            platforms = cl.get_platforms()
        except cl.Error:  # how the loader reports that there is no platform
            platforms = []
        listed = [_devices_of(platform) for platform in platforms]
    if not any(map(_is_of_intel, platforms)):
        listed += map(_devices_of, map(cl.Platform.from_int_ptr, intel.platforms()))
    found = []
    seen = set()
    for platform_index, handles in enumerate(listed):
        for device_index, handle in enumerate(handles):
            try:
                pointer = handle.int_ptr
                if pointer in seen:  # two ICD files name one library, which has its devices once
                    continue
                seen.add(pointer)
                device = record_of(handle, platform_index, device_index)
                if pointer in sides:
                    serial_side = _serial_side(*sides[pointer], device)
                    device = replace(device, serial_side=serial_side)
                found.append(device)
            except cl.Error:
                continue
    if pretend.asked():  # a GPU has no serial side, and there is nothing else
        found = [replace(device, serial_side=None) for device in found if device.pretended]
    return tuple(sorted(found, key=_preference))


def _is_of_intel(platform: cl.Platform) -> bool:
    """Return whether a platform is Intel's CPU runtime, installed by other ways than pip."""
    of_intel = platform.name.startswith("Intel")
    return of_intel and any(handle.type & cl.device_type.CPU for handle in _devices_of(platform))


def _serial_side(pointer: int, gate: Gate, device: Device) -> Device | None:
    """Return the record of the serial side of a device; None if it cannot be used."""
    side = _hidden(pointer, gate, device.platform_index, device.device_index)
    # Both use one compiler, so the findings of `oclab doctor` hold for both.
    return side and replace(side, side_of=device.key, capabilities=device.capabilities)


@cache
def _hidden(pointer: int, gate: Gate, platform_index: int, device_index: int) -> Device | None:
    handle = cl.Device.from_int_ptr(pointer)
    try:
        set_gate(handle, gate)
        with gate.opened():  # a device that is not available may tell nothing
            return record_of(handle, platform_index, device_index)
    except (cl.Error, LaunchError):
        return None


_discovering = threading.RLock()


def _found() -> tuple[Device, ...]:
    """Return every device; one thread discovers them while others wait."""
    with _discovering:
        try:
            return _discover()
        except _NoRoom:  # there may be room later
            return ()


def _after_fork() -> None:
    global _discovering
    _discovering = threading.RLock()  # its owner may be a thread that a fork does not copy


after_fork(_after_fork)


def devices() -> list[Device]:
    """Return every usable OpenCL device, the preferred one first.

    Returns
    -------
    list of Device
        GPUs, then accelerators, then CPUs; within a kind the largest (compute
        units times clock) first, but Intel's CPU runtime before others of the
        same processor, and simulators such as Oclgrind last. A device on which `oclab doctor`
        could not run a kernel comes after all others. Empty if there is no OpenCL driver.
    """
    return list(_found())


def _describe(found: list[Device]) -> str:
    if not found:
        return "no OpenCL device was seen at all"
    rows = (f"{index}: {device} [{device.spec}]" for index, device in enumerate(found))
    return "seen: " + "; ".join(rows)


def _what_is_missing() -> str:
    """Return why there may be no device, and what to do."""
    left = process_left()  # what has loaded in part stays
    if left >= 2 * START_BYTES:
        return INSTALL_HINT
    return (
        "the likely cause is the limit of this process's memory (ulimit -v), which leaves "
        f"{size_text(max(left, 0))}, where a CPU runtime needs about {size_text(START_BYTES)} to "
        "start: raise it"
    )


def _match(spec: str, found: list[Device]) -> Device | None:
    text = spec.strip().lower()
    if text in KINDS:
        return next((device for device in found if device.kind == text), None)
    if text.isdecimal():
        return found[int(text)] if int(text) < len(found) else None
    sides = [device.serial_side for device in found if device.serial_side is not None]
    if text == SERIAL[1:]:
        return next(iter(sides), None)
    if re.fullmatch(rf"\d+:\d+({SERIAL})?", text):
        return next((device for device in (*found, *sides) if device.spec == text), None)
    for device in found:
        named = " ".join((device.name, device.platform, device.platform_version, device.vendor))
        if text and text in named.lower():
            return device
    return None


def _why_this_runtime(device: Device, found: list[Device]) -> str:
    """Return why a CPU runtime was chosen among those for this processor, or "".

    If Intel's runtime, which would come first, is missing, that is said.
    """
    if device.kind == "cpu" and intel.why_missing():
        return intel.why_missing()
    others = {
        other.platform
        for other in found
        if other.kind == "cpu" and not other.simulated and other.platform != device.platform
    }
    if not others or not intel.is_intel_cpu(device.kind, device.platform):
        return ""
    return f"; {device.platform} launches kernels faster than {' and '.join(sorted(others))}"


def choose_device(spec: str | int | None = None) -> Selection:
    """Choose a device and give the reason.

    It is given by ``gpu``, ``cpu`` or ``accelerator``; ``serial``, the serial side of the first
    device that has one; an index into `devices`; the numbers ``platform:device``; or a substring of
    the name of the device, its platform, the platform's version or its vendor. None means
    ``$OCLAB_DEVICE`` if that is set, else the first of `devices`. If nothing matches, the
    `DeviceNotFound` lists what was seen.
    """
    origin = "asked for"
    if spec is None and os.environ.get("OCLAB_DEVICE"):
        spec, origin = os.environ["OCLAB_DEVICE"], "$OCLAB_DEVICE is"
    found = devices()
    if spec is not None:
        device = _match(str(spec), found)
        if device is None:
            hint = SEE_HINT if found or intel.why_missing() else _what_is_missing()
            raise DeviceNotFound(
                f"no OpenCL device matches {str(spec)!r} ({_describe(found)}); {hint}"
                f"{intel.why_missing()}"
            )
        runtime = _why_this_runtime(device, found) if str(spec).strip().lower() == "cpu" else ""
        if device.is_serial:  # such programs also use it without the library's gate
            leave_open(device.handle)
        return Selection(device, f"{origin} {str(spec)!r}{runtime}")
    if not found:
        raise DeviceNotFound(
            f"{_describe(found)}{intel.why_missing() or f'; {_what_is_missing()}'}"
        )
    device = found[0]
    if device.kind == "cpu":
        reason = "no GPU or accelerator found, so the CPU is used"
        return Selection(device, reason + _why_this_runtime(device, found), fallback=True)
    others = sum(other.kind == device.kind for other in found)
    size = "the only" if others == 1 else f"the largest of {others}"
    return Selection(device, f"{size} {device.kind}")


_fallback_said = False


def _is_ours(package: str | None) -> bool:
    return (package or "").partition(".")[0] == __name__.partition(".")[0]


def depth_of_caller() -> int:
    """Return the depth of `select_device` below its first caller outside of this package."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__package__")):
        depth, frame = depth + 1, frame.f_back
    return depth


def select_device(spec: DeviceSpec | cl.Device = None) -> Device:
    """Return the device to use, as `choose_device` does.

    A record stands for itself, and a `pyopencl.Device`, such as a part of a device that was made by
    `create_sub_devices`, for its record.

    Raises
    ------
    DeviceNotFound
        If nothing matches, or if `spec` is something else, such as a queue.

    Warns
    -----
    DeviceFallbackWarning
        Once per process, if no device was asked for and there are only CPUs.
    """
    global _fallback_said
    if isinstance(spec, Device):
        return spec
    if isinstance(spec, cl.Device):
        return device_of(spec)
    if not isinstance(spec, (str, Integral, type(None))):
        raise DeviceNotFound(
            "a device must be a text, a number or one of `opencl_lab.devices()`, not "
            f"{spec!r}; queues are given as queue="
        )
    selection = choose_device(spec)
    if selection.fallback and not _fallback_said:
        _fallback_said = True
        warnings.warn(
            f"{selection.reason}: {selection.device}; set OCLAB_DEVICE=cpu if that is meant",
            DeviceFallbackWarning,
            stacklevel=depth_of_caller(),
        )
    return selection.device


def device_of(handle: cl.Device) -> Device:
    """Return the record of a `pyopencl.Device`, for queues made by the user."""
    for device in _found():
        for side in (device, device.serial_side):
            if side is not None and side.handle == handle:
                return side
    return record_of(handle, -1, -1)  # a sub-device, or one that discovery could not see


def here(record: Device) -> Device:
    """Return this process's own record of a device, as another process may number it otherwise.

    It has the same key; among devices with equal keys it is the one with the same numbers, else the
    first. It is for workers: a serial side stays open to all of the process.

    Raises
    ------
    DeviceNotFound
        If there is none.
    """
    found = _alike(record)
    if found is None:
        raise DeviceNotFound(f"{record} is not here ({_describe(devices())})")
    if found.is_serial:
        leave_open(found.handle)
    return found


def _alike(record: Device) -> Device | None:
    sides = [side for one in devices() for side in (one, one.serial_side) if side is not None]
    alike = [side for side in sides if side.key == record.key]
    return next((side for side in alike if side.spec == record.spec), next(iter(alike), None))


def _found_again(record: Device) -> Device:
    """Return a record with its device's handle in this process, or None as the handle."""
    found = _alike(record)
    if found is None:
        return record
    return replace(
        record,
        handle=found.handle,
        serial_side=found.serial_side,
        platform_index=found.platform_index,
        device_index=found.device_index,
    )


def _reduced(device: Device) -> Any:
    """Return how `pickle` restores a device: handles are not valid in another process."""
    if device.handle is None:
        return object.__reduce_ex__(device, 2)
    return _found_again, (replace(device, handle=None, serial_side=None),)


copyreg.pickle(Device, _reduced)
