"""Bound calls on arrays of the host: on their memory in place, or on copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.runtime import staging
from opencl_lab.runtime.bound import BoundCall, Events, Fresh, Result, Run
from opencl_lab.runtime.executable import DeviceMemory
from opencl_lab.runtime.pointers import takes_pointers
from opencl_lab.runtime.session import Session

FLAGS = cl.mem_flags
POLLING_UNITS = 8
POLLING_SECONDS = 1e-4
"""Time for which a call looks for its end before it sleeps, where that leaves enough units to
kernels. On 16 cores PoCL sorted 1,000 keys in 58 us so, in a trial, instead of 85."""

HostArray: TypeAlias = np.ndarray[Any, Any]
_NOTHING: HostArray = np.empty(0)  # in the place of memory of the device


class HostMemory:
    """What kernels use in one call instead of arrays of the host.

    That is the memory of the array itself, by its address where a device takes it (see
    `takes_pointers`), or as a buffer made of it where device and host share memory; else pooled
    memory and copies, large ones through pinned memory. The caller holds the lock of the queue, and
    finishes it before he lets go of the arrays. `copies` are between memory of host and device;
    `pointers` says whether kernels get addresses.
    """

    __slots__ = ("_back", "_enqueued", "_pointers", "_queue", "_session", "_shared", "copies")

    def __init__(self, session: Session, queue: cl.CommandQueue, pointers: bool):
        self._queue = queue
        self._session = session
        self._shared = session.device.unified_memory
        self._pointers = pointers
        self._back: list[tuple[HostArray, DeviceMemory]] = []
        self.copies: list[cl.Event] = []
        # pyopencl waits for the event of a copy that nobody keeps, and holds up all threads.
        self._enqueued: list[cl.Event] = []

    def of(self, access: str, array: HostArray) -> DeviceMemory | None:
        """Return the memory for an array by the name of a method below; None if that is empty."""
        return getattr(self, access)(array) if access else None

    def source(self, array: HostArray) -> DeviceMemory:
        """Return memory that holds what `array` does."""
        memory = self._in_place(array, FLAGS.READ_ONLY)
        return self._send(array) if memory is None else memory

    def target(self, array: HostArray) -> DeviceMemory:
        """Return memory of any contents, whose later contents `fetch` brings to `array`."""
        memory = self._in_place(array, FLAGS.READ_WRITE)
        if memory is None:
            memory = self._session.allocate(self._queue, max(array.nbytes, 1))
        return self._fetched(array, memory)

    def changed(self, array: HostArray) -> DeviceMemory:
        """Return memory that holds what `array` does, and is brought back to it by `fetch`."""
        memory = self._in_place(array, FLAGS.READ_WRITE)
        return self._fetched(array, self._send(array) if memory is None else memory)

    def fetch(self, kernel: cl.Event | None) -> None:
        """Enqueue what brings all targets to the host after the last kernel, if there is one.

        Nothing where they were used by address. Runtimes skip the copy where a buffer was made
        of the array and lives in its memory. Mapping it says the same in two commands, of which
        each costs PoCL hundredths of a millisecond.
        """
        waits = [] if kernel is None else [kernel]
        for array, memory in self._back:
            if not self._shared and array.nbytes >= staging.LEAST:
                self.copies += self._session.staging.fetch(self._queue, array, memory, waits)
                continue
            copied = cl.enqueue_copy(self._queue, array, memory, is_blocking=False, wait_for=waits)
            self._enqueued.append(copied)
            if not (self._shared and _aligned(array)):
                self.copies.append(copied)

    def _in_place(self, array: HostArray, access: int) -> DeviceMemory | None:
        """Return the memory of `array` itself, if kernels can use it: aligned to elements."""
        if not (self._shared and array.size):
            return None
        if self._pointers and array.flags.writeable:  # pyopencl shares no other
            memory = cl.SVM(array)
            return None if _uneven(memory, array) else memory
        if not _aligned(array):
            return None
        # Runtimes may copy what a buffer is made of.
        return cl.Buffer(self._queue.context, access | FLAGS.USE_HOST_PTR, hostbuf=array)

    def _send(self, array: HostArray) -> DeviceMemory:
        memory = self._session.allocate(self._queue, max(array.nbytes, 1))
        if not self._shared and array.nbytes >= staging.LEAST_SENT:
            self.copies += self._session.staging.send(self._queue, memory, array)
        elif array.size:
            self.copies.append(cl.enqueue_copy(self._queue, memory, array, is_blocking=False))
        return memory

    def _fetched(self, array: HostArray, memory: DeviceMemory) -> DeviceMemory:
        if array.size and not isinstance(memory, cl.SVM):
            self._back.append((array, memory))
        return memory


def _uneven(memory: cl.SVM[Any], array: HostArray) -> bool:
    """Return whether the address of an array is none of a whole element, of complex ones too."""
    return bool(memory.svm_ptr % array.itemsize)


def _aligned(array: HostArray) -> bool:
    """Return whether an array is aligned to whole elements, complex ones too."""
    return bool(array.ctypes.data % array.itemsize == 0)


class HostCall(BoundCall):
    """A bound call on arrays of the host, which is waited for once.

    `in_place` says that all arrays of the caller are C-contiguous, writeable and not empty. Where
    the device takes addresses, kernels then get these at once; else `HostMemory` decides for each
    array. What is not returned lies in memory of the device alone.
    """

    on_host = True

    def __init__(
        self,
        queue: cl.CommandQueue,
        runs: Sequence[Run],
        arrays: int,
        fresh: Sequence[Fresh],
        results: Sequence[Result],
        constants: Sequence[HostArray] = (),
        *,
        in_place: bool,
    ):
        self._constants = constants  # alive, as kernels may use them in place
        self._by_address = False
        self.queue = queue
        memory = list(map(self._constant, constants))
        super().__init__(queue, runs, arrays, fresh, results, memory)
        self._access = [_access(runs, place) for place in range(arrays)]
        self._may_share = in_place and all(self._access)

    def _constant(self, array: HostArray) -> DeviceMemory:
        if self._by_address:
            return cl.SVM(array)
        flags = FLAGS.READ_ONLY | FLAGS.COPY_HOST_PTR
        return cl.Buffer(self.queue.context, flags, hostbuf=array)

    def _run(self, arrays: Sequence[HostArray], events: Events | None) -> list[Any]:
        with self._alone:
            return self._views(self._run_alone(arrays, events))

    def _run_alone(self, arrays: Sequence[HostArray], events: Events | None) -> list[HostArray]:
        """Run it and return the arrays in all places, those of the device as an empty one."""
        session, queue, known = self._session, self.queue, [*arrays]
        pointers = takes_pointers(session.device)
        if self._constants and pointers != self._by_address:  # known only by now
            self._by_address = pointers
            self._fixed[: len(self._constants)] = map(self._constant, self._constants)
        host: HostMemory | None = None
        try:
            in_place = self._may_share and pointers
            memory: list[Any] = list(map(cl.SVM, arrays)) if in_place else []
            if not in_place or any(map(_uneven, memory, arrays)):
                host = HostMemory(session, queue, pointers)
                memory = list(map(host.of, self._access, arrays))
            target = cl.SVM if host is None else host.target
            for place, item in enumerate(self._fresh, self._arrays):
                if place in self._returned:
                    known.append(session.host_results.empty(item.shape, item.dtype))
                    memory.append(target(known[-1]))
                else:
                    known.append(_NOTHING)
                    memory.append(self._pool.take(item.nbytes))
            event = self.enqueue(memory, (), events)
            if host is not None:
                host.fetch(event)
                queue.finish()
            elif event is not None:
                # It comes after all other launches, and to wait for it takes less than `finish`.
                self._wait(event)
        except BaseException:
            # The arrays of the caller must not be in use once this returns, even by an error.
            queue.finish()
            raise
        if host is not None and events is not None:
            events.copies.extend(host.copies)
        return known

    def _wait(self, event: cl.Event) -> None:
        if self._session.device.compute_units >= POLLING_UNITS:
            self.queue.flush()
            end = perf_counter() + POLLING_SECONDS
            while event.command_execution_status > 0 and perf_counter() < end:
                pass
        event.wait()

    def _views(self, arrays: Sequence[HostArray]) -> list[Any]:
        """Return the results, which lie in arrays of the caller's and in new ones."""
        results = []
        for result in self._results:
            array = arrays[result.place]
            if result.place >= self._arrays and not result.as_made:
                array = array.view(result.dtype).reshape(result.shape)
            results.append(array)
        return results


def _access(runs: Sequence[Run], place: int) -> str:
    """Return which method of `HostMemory` serves an array that runs read or write; may be none."""
    read = written = False
    for run in runs:
        read = read or (not written and place in run.inputs.values())
        written = written or place in run.outputs.values()
    return {
        (True, True): "changed",
        (True, False): "source",
        (False, True): "target",
        (False, False): "",
    }[read, written]
