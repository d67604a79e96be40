"""What a call asks before it runs kernels: whether they are right on its device."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.drivers.discovery import depth_of_caller, devices
from opencl_lab.selftest.verdicts import BASICS, MODE, Family, identity, kept, shipped

if TYPE_CHECKING:  # children are not needed on devices that are trusted
    from opencl_lab.selftest.examination import Examination

MODES = ("off", "quick", "full")
HOW_TO_GO_ON = (
    "`oclab selftest` shows what is wrong, and `oclab doctor --again` tests the device once more"
)

servant = ""
"""``module:class`` of what the child runs, set by `opencl_lab.ops.solver`."""

_examinations: dict[tuple[Device, str], Examination | None] = {}
_said: set[tuple[Device, Family]] = set()
_lock = threading.Lock()


class SelfTestWarning(UserWarning):
    """An algorithm is wrong on a device, so that another one takes its place."""


def mode() -> str:
    """Return what ``OCLAB_SELFTEST`` says: ``off``, ``quick`` (the default) or ``full``."""
    value = os.environ.get(MODE, "").lower() or "quick"
    if value in ("0", "no", "false"):
        value = "off"
    if value not in MODES:
        raise InvalidConfig(f"{MODE} must be one of {', '.join(MODES)}, not {value!r}")
    return value


def _examination(device: Device) -> Examination | None:
    """Return the self-test of a device; None if its results are trusted."""
    wanted = mode()
    if wanted == "off" or device.handle is None or not servant:
        return None
    key = device, wanted
    with _lock:
        if key not in _examinations:
            _examinations[key] = _begin(device, wanted == "full")
        return _examinations[key]


def _begin(device: Device, full: bool) -> Examination | None:
    whole = _as_listed(device)
    known = identity(device) in shipped() and not full
    if whole is None or (known and not any(one.fault for one in kept(whole).values())):
        return None
    from opencl_lab.selftest.examination import Examination

    return Examination(whole, servant, full=full)


def _as_listed(device: Device) -> Device | None:
    """Return the device that another process can find for this one.

    A part of a device is made by a program for itself; the whole one stands for it.
    """
    if device.platform_index >= 0:
        return device
    alike = (other for other in devices() if identity(other) == identity(device))
    return next(alike, None)


def forget() -> None:
    """Ask again for each device; for tests, and after new verdicts."""
    with _lock:
        _examinations.clear()
        _said.clear()


def admit(device: Device) -> None:
    """Raise `LaunchError` if what nearly every kernel needs does not work on a device."""
    examination = _examination(device)
    if examination is not None:
        fault = examination.verdict(BASICS, ()).fault
        if fault:
            raise LaunchError(f"{device} computes wrong results ({fault}); {_instead(device)}")


def fault(device: Device, family: Family, templates: tuple[str, ...]) -> str:
    """Return what is wrong with a kernel family on a device, or ""; test it if that is unknown."""
    examination = _examination(device)
    return "" if examination is None else examination.verdict(family, templates).fault


def warn(device: Device, family: Family, why: str, then: str) -> None:
    """Warn once in this process that a family is wrong; `then` says what happens."""
    if (device, family) not in _said:
        _said.add((device, family))
        warnings.warn(
            f"{family} is wrong on {device}: {why}; {then}; {HOW_TO_GO_ON}",
            SelfTestWarning,
            stacklevel=depth_of_caller() + 1,
        )


def refusal(operation: str, device: Device, faults: Sequence[tuple[Family, str]]) -> LaunchError:
    """Return the error that no algorithm of an operation is right on a device."""
    why = "; ".join(f"{family.algorithm}: {fault}" for family, fault in faults)
    return LaunchError(
        f"no algorithm of {operation} is right on {device}: {why}; {_instead(device)}"
    )


def _instead(device: Device) -> str:
    """Return which other device to use, in words."""
    others = [other for other in devices() if other.key not in (device.key, device.side_of)]
    if not others:
        return 'install another driver, such as pip install "pyopencl[pocl]" for the CPU'
    return f"use another device, such as device={others[0].spec!r} ({others[0]})"
