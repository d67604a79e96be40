"""The library's own queues, and whether OpenCL works in this process."""

from __future__ import annotations

import ctypes
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import FrameType
from typing import Any

import pyopencl as cl

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.systems import after_fork

try:
    from pyopencl import invoker
except (OSError, RuntimeError, sqlite3.Error):
    # Its folder cannot be written to, or a file there is damaged: nobody could make a kernel.
    cl._PYOPENCL_NO_CACHE = True
    from pyopencl import invoker


def _interpreter(which: str) -> int:
    return int(
        ctypes.PYFUNCTYPE(ctypes.c_void_p)((f"PyInterpreterState_{which}", ctypes.pythonapi))()
    )


if _interpreter("Get") != _interpreter("Main"):
    raise ImportError(
        "opencl_lab cannot run in a subinterpreter, at whose end the process would abort or hang; "
        "use threads or processes"
    )

# Without it, two threads could each make a session or a queue, and pyopencl, which
# generates code for each new kernel object, would warn of a clash.
MAKING = threading.RLock()
CACHE = "invoker_cache"

profiles: list[Any] = []
"""The active `Profile`s: while there is one, the library's queues are those with profiling."""

PATIENCE = 1.0
"""Seconds that the end of the process waits for calls of other threads."""

# A forked process lacks the threads of the driver, and would wait for them for ever.
_started = _forked = False
_ending: int | None = None  # the thread that ends the process
_refusing = False  # whether one of both holds


def new_program(context: cl.Context, text: str) -> cl.Program:
    """Return a program to build, which pyopencl does not take from its cache on disk.

    That is not checked, and fails permanently on a damaged file.
    """
    program = cl.Program(context, text)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Pre-build attribute access")
        program.get_info(cl.program_info.NUM_DEVICES)
    return program


class _NoCache:
    """What pyopencl finds nothing in."""

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def store_if_not_present(self, key: Any, value: Any) -> None:
        """Forget it."""


def new_kernel(program: cl.Program, name: str) -> cl.Kernel:
    """Return a kernel object, likewise: pyopencl keeps code that calls kernels on disk, too."""
    with MAKING:
        before = getattr(invoker, CACHE, None)
        if before is None:  # switched off
            return cl.Kernel(program, name)
        setattr(invoker, CACHE, _NoCache())
        try:
            return cl.Kernel(program, name)
        finally:
            setattr(invoker, CACHE, before)


def note_start() -> None:
    """Remember that drivers have started."""
    global _started
    _started = True


def _after_fork() -> None:
    global _forked, _refusing
    _forked = _forked or _started
    _refusing = _refusing or _forked


after_fork(_after_fork)


def is_forked() -> bool:
    """Return whether this process was forked after OpenCL had started, so that drivers fail."""
    return _forked


def check_process() -> None:
    """Refuse to use OpenCL where it cannot be used any longer.

    Raises
    ------
    LaunchError
        If this process was forked after OpenCL had started.
    SystemExit
        If another thread ends the process; see `end_calls`.
    """
    if _refusing:
        if _forked:
            raise LaunchError(
                "this process was forked after OpenCL had started, and drivers do not survive that;"
                " start processes by multiprocessing's 'spawn' or 'forkserver', or fork before the "
                "first use of opencl_lab"
            )
        if _ending != threading.get_ident():
            raise SystemExit  # ends the thread; `threading` prints nothing


def end_calls() -> None:
    """Wait at most `PATIENCE` for calls of other threads, which cannot begin others from now on.

    The interpreter ends its daemon threads where they next take its lock. Where that is within
    pyopencl, the process aborts, as no exception may leave functions of C++.
    """
    global _ending, _refusing
    _ending, _refusing = threading.get_ident(), True
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and any(
        _is_calling(frame) for thread, frame in sys._current_frames().items() if thread != _ending
    ):
        time.sleep(0.001)


def _is_calling(frame: FrameType | None) -> bool:
    """Return whether functions of pyopencl, or of our modules that use it, are on a stack."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "pyopencl" or (package == "opencl_lab" and "cl" in frame.f_globals):
            return True
        frame = frame.f_back
    return False


class Gate:
    """Lets one thread at a time use a device that programs are not to see.

    The driver takes the device for available while the number `available`, which lies in the
    driver's memory, is 1; otherwise it is 0. It has to be 1 to make contexts and queues, to build,
    to enqueue and to wait. A thread that holds `lock` sets it to 1, and at the end to its earlier
    value, as it may hold the lock twice. Short calls do
    so themselves: no Python function may enter or leave the lock, as Ctrl-C could end that
    function halfway, and other threads would wait for ever.
    """

    def __init__(self, available: ctypes.c_uint32):
        self.available = available
        self.lock = threading.RLock()
        available.value = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the lock while the device can be used."""
        with self.lock:
            before = self.available.value
            self.available.value = 1
            try:
                yield
            finally:
                self.available.value = before

    def leave_open(self) -> None:
        """Let the device be used anywhere from now on."""
        with self.lock:  # else another thread would close it
            self.available.value = 1


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
    """Return a context in which a device can be used; it does nothing for most devices."""
    gate = _gates.get(handle)
    return nullcontext() if gate is None else gate.opened()


def finish(queue: cl.CommandQueue) -> None:
    """Wait for all that is enqueued, also on a hidden device, on which PoCL 5 refuses to wait."""
    check_process()
    with within_gate(queue.device):
        queue.finish()


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
    check_process()
    with MAKING:
        return _queue(handle, profiling or bool(profiles))
