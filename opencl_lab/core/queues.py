"""The library's own queues, and whether OpenCL works in this process."""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Protocol

import pyopencl as cl

from opencl_lab.core.errors import LaunchError

# Without it, two threads could each make a session or a queue, and pyopencl, which
# generates code for each new kernel object, would warn of a clash.
MAKING = threading.RLock()

# A forked process lacks the threads of the driver, and would wait for them for ever.
_started = _forked = False


def note_start() -> None:
    """Remember that drivers have started."""
    global _started
    _started = True


def _after_fork() -> None:
    global _forked
    _forked = _forked or _started


os.register_at_fork(after_in_child=_after_fork)


def is_forked() -> bool:
    """Return whether this process was forked after OpenCL had started, so that drivers fail."""
    return _forked


def check_fork() -> None:
    """Raise `LaunchError` if this process was forked after OpenCL had started."""
    if _forked:
        raise LaunchError(
            "this process was forked after OpenCL had started, and drivers do not survive that; "
            "start processes by multiprocessing's 'spawn' or 'forkserver', or fork before the "
            "first use of opencl_lab"
        )


class Gate(AbstractContextManager[None], Protocol):
    """A context in which a hidden device can be used, by one thread at a time.

    It is needed to make contexts and queues, to build, to enqueue and to wait.
    """

    def leave_open(self) -> None:
        """Let the device be used anywhere from now on."""


_gates: dict[Any, Gate] = {}


def set_gate(handle: cl.Device, gate: Gate) -> None:
    """Use a device only within `gate`.

    A context on it is held for ever: PoCL 5 aborts where the last one is released while a device is
    hidden.
    """
    _gates[handle] = gate
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_context(handle)))


def gate_of(handle: cl.Device) -> Gate | None:
    """Return the gate of a device; None for most devices, which need none."""
    return _gates.get(handle)


def leave_open(handle: cl.Device) -> None:
    """Leave the gate of a device open, if it has one."""
    if handle in _gates:
        _gates[handle].leave_open()


def within_gate(handle: cl.Device) -> AbstractContextManager[Any]:
    """Return the gate of a device, or a context that does nothing."""
    return _gates.get(handle) or nullcontext()


@cache
def _context(handle: Any) -> cl.Context:
    """Return the library's own context; with some drivers, queues do not keep it alive."""
    with within_gate(handle):
        try:
            return cl.Context([handle])
        except cl.Error as error:
            raise LaunchError(f"no context on {handle.name.strip()}: {error}") from error


@cache
def _queue(handle: Any, profiling: bool) -> cl.CommandQueue:
    context = _context(handle)
    with within_gate(handle):
        try:
            if not profiling:
                return cl.CommandQueue(context, handle)  # PoCL wants the root device
            return cl.CommandQueue(context, handle, cl.command_queue_properties.PROFILING_ENABLE)
        except cl.Error as error:
            raise LaunchError(f"no queue on {handle.name.strip()}: {error}") from error


def queue_of(handle: cl.Device, profiling: bool) -> cl.CommandQueue:
    """Return one of the library's own two queues on a device; see `Device.queue`."""
    check_fork()
    with MAKING:
        return _queue(handle, profiling)
