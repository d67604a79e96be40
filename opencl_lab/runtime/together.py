"""Several devices in one call: which ones, the share of each, and a thread for each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from itertools import accumulate, zip_longest
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.drivers.discovery import DeviceSpec, select_device
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Stop, Stopped, abandon, start
from opencl_lab.runtime.streams import Lanes, lanes_of
from opencl_lab.runtime.tile_schedule import Upload
from opencl_lab.runtime.tiles import TileRun, TileWork

Devices: TypeAlias = Sequence[DeviceSpec | cl.Device] | None
"""Argument of functions that several devices can work on."""
GPU_LANES, CPU_LANES = 128, 2
"""Estimated elements that a compute unit of a GPU, or each lane of a CPU's vectors, works on at a
time."""


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


def run_tiles_together(works: Sequence[TileWork], devices: Sequence[Device]) -> None:
    """Run the iterations of several devices with memory of their own, each in a thread.

    One thread copies the tiles for all of them. First come those that have a slot from the start,
    of which it reads once what several devices need: copies on the host, not those to the
    devices, are what limits large products. The devices are different ones. Errors are those of
    `on_each`; that of a copy to several devices names the first that waits for it.
    """
    lanes = [lanes_of(session_of(work.queue)) for work in works]

    def locked(left: Sequence[Lanes]) -> None:
        if left:
            with left[0].lock:
                locked(left[1:])
        else:
            _run_together(works, lanes, devices)

    locked(sorted(lanes, key=id))  # in one order, so that two calls cannot wait for each other


def _run_together(
    works: Sequence[TileWork], lanes: Sequence[Lanes], devices: Sequence[Device]
) -> None:
    runs: dict[int, TileRun] = {}

    def prepare(index: int, stop: Stop) -> None:
        runs[index] = works[index].prepare(lanes[index])

    on_each(devices, prepare)
    takers_of: dict[Any, list[tuple[TileRun, Upload]]] = {}
    for uploads in zip_longest(*(work.plan.uploads for work in works)):
        for index, upload in enumerate(uploads):
            if upload is not None and not upload.after:
                view = works[index].view(upload)
                memory = view.ctypes.data, view.shape, view.strides
                takers_of.setdefault(memory, []).append((runs[index], upload))
    with ThreadPoolExecutor(1, "oclab-read") as reading:
        begun: dict[tuple[TileRun, Upload], Future[Any]] = {}
        for takers in takers_of.values():
            begun |= dict.fromkeys(takers, start(reading, partial(_read_for, takers)))

        def go(index: int, stop: Stop) -> None:
            run = runs[index]

            def send(upload: Upload) -> Future[Any]:
                return begun.get((run, upload)) or start(reading, partial(run.read, upload))

            try:
                run.go(send, stop)
            except CancelledError:  # another device failed
                raise Stopped from None

        try:
            on_each(devices, go)
        finally:
            abandon(deque(begun.values()))


def _read_for(takers: Sequence[tuple[TileRun, Upload]]) -> None:
    """Copy a tile to the devices that need it."""
    (first, upload), *others = takers
    first.read(upload, others)
