"""What a call asks before it runs kernels: whether they are right on its device."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opencl_lab._version import __version__
from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.core.systems import OFF, after_fork
from opencl_lab.drivers.discovery import depth_of_caller, devices
from opencl_lab.selftest.verdicts import DEVICE, MODE, Family, identity, kept, shipped

if TYPE_CHECKING:  # children are not needed on devices that are trusted
    from opencl_lab.selftest.examination import Examination

MODES = ("off", "quick", "full")
AGAIN = "`oclab selftest` tests the device again"
ANYWAY = "OCLAB_SELFTEST=off uses it all the same"

_log = logging.getLogger(__name__)

handler = ""
"""``module:class`` of what the child runs, set by `opencl_lab.ops.solver`."""

_examinations: dict[tuple[Device, str], Examination | None] = {}
_said: set[tuple[Device, Family | None]] = set()
_lock = threading.Lock()


class SelfTestWarning(UserWarning):
    """An algorithm is wrong on a device, so that another one takes its place."""


def mode() -> str:
    """Return what ``OCLAB_SELFTEST`` says: ``off``, ``quick`` (the default) or ``full``."""
    value = os.environ.get(MODE, "").strip().lower() or "quick"
    if value in OFF:
        return "off"
    if value not in MODES:
        raise InvalidConfig(f"{MODE} must be one of {', '.join(MODES)}, not {value!r}")
    return value


def _examination(device: Device) -> Examination | None:
    """Return the self-test of a device; None if its results are trusted."""
    wanted = mode()
    if wanted == "off" or device.handle is None or not handler:
        return None
    key = device, wanted
    with _lock:
        if key not in _examinations:
            _examinations[key] = _begin(device, wanted == "full")
        return _examinations[key]


def _begin(device: Device, full: bool) -> Examination | None:
    whole = None if device.simulated else _as_listed(device)  # simulators are right, and slow
    if whole is None:
        _log.info("%s is not tested", device)
        return None
    faulty = (one.word == "broken" and one.version == __version__ for one in kept(whole).values())
    if identity(device) in shipped() and not full and not any(faulty):
        return None
    from opencl_lab.selftest.examination import Examination

    return Examination(whole, handler, full=full)


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
    fault_of_all = fault(device, DEVICE, ())
    if fault_of_all:
        raise LaunchError(
            f"{device} computes wrong results ({fault_of_all}); {_instead(device)}; {AGAIN}; "
            f"{ANYWAY}"
        )


def fault(device: Device, family: Family, templates: tuple[str, ...]) -> str:
    """Return what is wrong with a kernel family on a device, or ""; test it if that is unknown.

    A family that cannot be tested is used, with one warning in the log.
    """
    examination = _examination(device)
    if examination is None:
        return ""
    found = examination.verdict(family, templates)
    if found.word == "unknown" and _is_new(device, None):
        _log.warning("%s is used untested: %s", device, found.detail)
    return found.detail if found.word == "broken" else ""


def _is_new(device: Device, family: Family | None) -> bool:
    """Return whether nothing was said about a family, or about the device, in this process."""
    with _lock:
        new = (device, family) not in _said
        _said.add((device, family))
        return new


def warn(device: Device, family: Family, why: str, then: str) -> None:
    """Warn once in this process that a family is wrong; `then` says what happens."""
    if _is_new(device, family):
        warnings.warn(
            f"{family} is wrong on {device}: {why}; {then}; {AGAIN}",
            SelfTestWarning,
            stacklevel=depth_of_caller() + 1,
        )


def refusal(
    operation: str, device: Device, faults: Sequence[tuple[Family, str]], others: Sequence[str]
) -> LaunchError:
    """Return the error that no algorithm of an operation is right on a device.

    `others` says why the algorithms that are not wrong cannot be used.
    """
    why = "; ".join([*(f"{family.algorithm}: {fault}" for family, fault in faults), *others])
    return LaunchError(
        f"no algorithm of {operation} is right on {device}: {why}; "
        f"{_instead(device)}; {AGAIN}; {ANYWAY}"
    )


def _instead(device: Device) -> str:
    """Return which other device to use, in words."""
    others = [other for other in devices() if other.key != device.key]
    if not others:
        return 'install another driver, such as pip install "pyopencl[pocl]" for the CPU'
    return f"use another device, such as device={others[0].spec!r} ({others[0]})"


def _after_fork() -> None:
    """Begin anew: the threads that hold locks are not copied."""
    global _lock
    _lock = threading.Lock()
    _examinations.clear()


after_fork(_after_fork)
