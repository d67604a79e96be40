"""Several devices in one call: which ones, who does what, and one thread for each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.drivers.discovery import DeviceSpec, select_device
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import start

Devices: TypeAlias = Sequence[DeviceSpec | cl.Device] | None
"""Argument of functions that several devices can work on."""
GPU_LANES, CPU_LANES = 128, 2
"""Estimated elements that a compute unit of a GPU, or each lane of a CPU's vectors, works on at a
time."""

T = TypeVar("T")


def asked_for(
    devices: Devices, queue: Any, device: DeviceSpec, arrays: Iterable[Any]
) -> tuple[Device, ...]:
    """Return the devices of `devices`; none if that is None.

    Raises
    ------
    InvalidConfig
        If it is no sequence, or empty, or given together with `queue` or `device`.
    InvalidProblem
        If there are several devices, and one of `arrays` is on a device.
    DeviceNotFound
        As `select_device`.
    """
    if devices is None:
        return ()
    if queue is not None or device is not None:
        raise InvalidConfig("give devices=, or one of queue= and device=, not both")
    if isinstance(devices, str | bytes) or not isinstance(devices, Sequence):
        raise InvalidConfig(f"devices must be a list of devices, not {devices!r}")
    if not devices:
        raise InvalidConfig("devices is empty; name at least one device, see `oclab devices`")
    found = tuple(map(select_device, devices))
    if len(found) > 1 and any(map(is_device_array, arrays)):
        raise InvalidProblem(
            "several devices work on arrays of the host only; a device array stays on its own "
            "device, so leave out devices="
        )
    return found


def speed(device: Device) -> float:
    """Return an estimate of how fast a device computes: its clock times elements at a time.

    It tells a GPU from a processor, and a large one from a small one, and no more than that.
    """
    lanes = CPU_LANES * device.native_vector_bytes // 4 if device.kind == "cpu" else GPU_LANES
    return float(device.compute_units * max(device.clock, 1) * lanes)


def divided(n: int, devices: Sequence[Device]) -> list[int]:
    """Return where the share of each device of `n` things begins, by its `speed`, and `n`."""
    speeds = list(map(speed, devices))
    begins = accumulate(speeds[:-1], initial=0.0)
    return [*(int(n * begin / sum(speeds)) for begin in begins), n]


def new_result(devices: Sequence[Device], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an uninitialised array of the host, as plain calls on the first device return."""
    return session_of(devices[0].queue()).host_results.empty(shape, dtype)


class HandOut(Generic[T]):
    """Units of work that devices take one by one, so that a faster device takes more.

    They lie in rows. A device takes those of one row after the other, then another row; if none is
    left, it takes units of the longest one from its other end. `devices` have one place each in
    `take`.
    """

    def __init__(self, rows: Iterable[Sequence[T]], devices: Sequence[Device]):
        self._untouched = deque(deque(row) for row in rows if row)
        self._left = sum(map(len, self._untouched))
        self._speeds = list(map(speed, devices))
        self._rows: list[deque[T]] = [deque() for _ in devices]
        # Rows back and forth, so that a row begins with what is there from the previous one.
        self._back = [True] * len(self._speeds)
        self._lock = threading.Lock()

    def take(self, who: int, waiting: int = 0) -> T | None:
        """Return the next unit for a device, of which it has not done `waiting` ones yet.

        None if there is no more, or if it would be done later than if others take it. Later a
        device may get another unit only if some were waiting. With none, the fastest device gets
        one as long as there are any.
        """
        with self._lock:
            if not self._left or self._is_late(who, waiting):
                return None
            self._left -= 1
            if not self._rows[who] and self._untouched:
                self._rows[who] = self._untouched.popleft()
                self._back[who] = not self._back[who]
            owner = who if self._rows[who] else max(self._owners(), key=self._length)
            back = self._back[owner] if owner == who else not self._back[owner]
            return self._rows[owner].pop() if back else self._rows[owner].popleft()

    def _owners(self) -> range:
        return range(len(self._rows))

    def _length(self, who: int) -> int:
        return len(self._rows[who])

    def _is_late(self, who: int, waiting: int) -> bool:
        others = [speed for at, speed in enumerate(self._speeds) if at != who]
        if not others:
            return False
        theirs = max(1 / max(others), self._left / sum(others))
        return (waiting + 1) / self._speeds[who] > theirs


class Stopped(Exception):
    """Another device has failed, or the call was interrupted."""


class Stop:
    """Whether the work of all devices is to end."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """End the work of all devices."""
        self._event.set()

    def check(self) -> None:
        """Raise `Stopped` if the work is to end."""
        if self._event.is_set():
            raise Stopped


def on_each(devices: Sequence[Device], work: Callable[[int, Stop], None]) -> None:
    """Run ``work(index, stop)`` for each device in a thread of its own, and wait for all.

    `work` calls ``stop.check()`` between its units. If one raises an error, or at Ctrl-C, the
    others stop there, and the error is raised once all have ended; it names the device.
    """
    # An interrupt while a thread starts may hide it, so none begins before all have started.
    stop, ready, caller = Stop(), threading.Event(), threading.current_thread()

    def drive(index: int) -> None:
        device = devices[index]
        try:
            if threading.current_thread() is not caller:
                ready.wait()
            stop.check()
            work(index, stop)
        except Stopped:
            pass
        except BaseException as error:
            stop.set()
            if isinstance(error, cl.Error):
                error = explain(error, device.queue())
            if isinstance(error, OclabError):
                where = f"devices[{index}], {device}"
                error.args = (f"{where}: {error.sentence}", *error.args[1:])
            raise error

    with ThreadPoolExecutor(len(devices), "oclab-device") as pool:
        jobs = []
        try:
            jobs += [start(pool, partial(drive, index)) for index in range(len(devices))]
            ready.set()
            for job in jobs:
                job.result()
        except BaseException:
            stop.set()
            raise
        finally:
            ready.set()
            jobs.clear()  # a failed one would form a reference cycle
