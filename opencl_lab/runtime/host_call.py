"""Bound calls on host arrays: on their memory in place, or on copies of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.runtime import staging
from opencl_lab.runtime.bound import BoundCall, BoundRun, Events, Fresh, Returned
from opencl_lab.runtime.executable import DeviceMemory
from opencl_lab.runtime.host_results import HostArray
from opencl_lab.runtime.session import Session, session_of

FLAGS = cl.mem_flags
POLLING_UNITS = 8
POLLING_SECONDS = 1e-4
"""How long a call polls for its end before it sleeps, if enough compute units are left to kernels.
In a trial on 16 cores, PoCL then sorted 1,000 keys in 58 us instead of 85."""

_NOTHING: HostArray = np.empty(0)  # stands for memory on the device


class HostMemory:
    """The memory that kernels use for host arrays in one call.

    That is the array's own memory, by address with `Device.shared_pointers`, or as a buffer where
    device and host share memory; else pooled memory and copies, large ones through pinned memory.
    The caller holds the lock of the queue and finishes the queue before it releases the arrays.
    `copies` are the events of copies between host and device; `pointers` is whether kernels get
    addresses.
    """

    def __init__(self, session: Session, queue: cl.CommandQueue, pointers: bool):
        self._queue = queue
        self._session = session
        self._shared = session.device.unified_memory
        self._pointers = pointers
        self._back: list[tuple[HostArray, DeviceMemory]] = []
        self._taken: list[tuple[int, DeviceMemory]] = []  # from the pool
        self.copies: list[cl.Event] = []
        # If a copy's event is dropped, pyopencl waits for it and blocks all threads.
        self._enqueued: list[cl.Event] = []

    def of(self, access: str, array: HostArray) -> DeviceMemory | None:
        """Return memory for an array by the method named `access`; None for an empty name.

        The array is contiguous in either order; kernels take its memory as it is.
        """
        flat = array if array.flags.c_contiguous else array.T
        return getattr(self, access)(flat) if access else None

    def source(self, array: HostArray) -> DeviceMemory:
        """Return memory with the contents of `array`."""
        memory = self._in_place(array, FLAGS.READ_ONLY)
        return self._send(array) if memory is None else memory

    def target(self, array: HostArray) -> DeviceMemory:
        """Return uninitialized memory, which `fetch` copies to `array` after the kernels."""
        memory = self._in_place(array, FLAGS.READ_WRITE)
        if memory is None:
            memory = self._take(array)
        return self._fetched(array, memory)

    def changed(self, array: HostArray) -> DeviceMemory:
        """Return memory with the contents of `array`, which `fetch` copies back to it."""
        memory = self._in_place(array, FLAGS.READ_WRITE)
        return self._fetched(array, self._send(array) if memory is None else memory)

    def fetch(self, kernel: cl.Event | None) -> None:
        """Enqueue copies of all targets to the host, after the event of the last kernel if given.

        Targets used by address need none. For a buffer that lives in the array's memory, runtimes
        skip the copy. Mapping and unmapping would do the same in two commands, each of which takes
        PoCL some 10 us.
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
        if self._pointers and array.flags.writeable:  # pyopencl shares no read-only array
            memory = cl.SVM(array)
            return None if memory.svm_ptr % array.itemsize else memory
        if not _aligned(array):
            return None
        # Runtimes may copy the array to the buffer.
        return cl.Buffer(self._queue.context, access | FLAGS.USE_HOST_PTR, hostbuf=array)

    def release(self) -> None:
        """Give memory back to the pool, once no command uses it."""
        for nbytes, memory in self._taken:
            self._session.pool(self._queue).give(nbytes, memory)

    def _take(self, array: HostArray) -> DeviceMemory:
        nbytes = max(array.nbytes, 1)  # OpenCL has no empty buffers
        memory = self._session.pool(self._queue).take(nbytes)
        self._taken.append((nbytes, memory))
        return memory

    def _send(self, array: HostArray) -> DeviceMemory:
        memory = self._take(array)
        if not self._shared and array.nbytes >= staging.LEAST_SENT:
            self.copies += self._session.staging.send(self._queue, memory, array)
        elif array.size:
            self.copies.append(cl.enqueue_copy(self._queue, memory, array, is_blocking=False))
        return memory

    def _fetched(self, array: HostArray, memory: DeviceMemory) -> DeviceMemory:
        if array.size and not isinstance(memory, cl.SVM):
            self._back.append((array, memory))
        return memory


def _aligned(array: HostArray) -> bool:
    """Return whether an array, also a complex one, is aligned to whole elements."""
    return bool(array.ctypes.data % array.itemsize == 0)


def plain_types(arrays: Collection[HostArray]) -> tuple[np.dtype[Any], ...] | None:
    """Return the types of arrays, or None if one is empty or not contiguous, aligned, writeable.

    Contiguous in either order: kernels take the memory as it is.
    """
    plain = all(array.size and array.flags.behaved and array.flags.forc for array in arrays)
    return tuple(array.dtype for array in arrays) if plain else None


class HostCall(BoundCall):
    """A bound call on host arrays, which waits once.

    With `types`, those of the caller's arrays (see `plain_types`), these are used by address if the
    device can. New arrays that are not returned exist on the device alone.
    """

    on_host = True

    def __init__(
        self,
        queue: cl.CommandQueue,
        runs: Sequence[BoundRun],
        arrays: int,
        fresh: Sequence[Fresh],
        results: Sequence[Returned],
        constants: Sequence[HostArray] = (),
        *,
        types: Sequence[np.dtype[Any]] | None,
    ):
        self._constants = constants  # referenced here, as kernels may use them in place
        device = session_of(queue).device
        self._pointers = device.unified_memory and device.shared_pointers
        self.queue = queue
        memory = list(map(self._constant, constants))
        super().__init__(queue, runs, arrays, fresh, results, memory)
        self._access = [_access(runs, place) for place in range(arrays)]
        self._in_place = self._pointers and types is not None and all(self._access)
        # NumPy aligns complex elements to their parts.
        self._halves = [
            (place, kind.itemsize)
            for place, kind in enumerate(types or ())
            if kind.alignment < kind.itemsize
        ]
        self._returns = [item.place for item in results]
        maker = self._session.host_results.maker
        self._new = [
            (maker(item.shape, item.dtype) if place in self._returned else None, item.nbytes)
            for place, item in enumerate(fresh, arrays)
        ]

    def _constant(self, array: HostArray) -> DeviceMemory:
        if self._pointers:
            return cl.SVM(array)
        flags = FLAGS.READ_ONLY | FLAGS.COPY_HOST_PTR
        return cl.Buffer(self.queue.context, flags, hostbuf=array)

    def _run(self, arrays: Sequence[HostArray], events: Events | None) -> list[Any]:
        session, queue = self._session, self.queue
        known: list[HostArray] = [*arrays]
        host: HostMemory | None = None
        available = self._available
        with self._lock:
            before, available.value = available.value, 1
            try:
                in_place = self._in_place
                memory: list[Any] = list(map(cl.SVM, arrays)) if in_place else []
                for place, itemsize in self._halves:
                    in_place = in_place and memory[place].svm_ptr % itemsize == 0
                if not in_place:
                    host = HostMemory(session, queue, self._pointers)
                    if not self._in_order:  # earlier commands may still use memory of the pool
                        cl.enqueue_barrier(queue)
                    memory = list(map(host.of, self._access, arrays))
                target = cl.SVM if host is None else host.target
                for make, nbytes in self._new:
                    if make is None:
                        known.append(_NOTHING)
                        memory.append(self._pool.take(nbytes))
                    else:
                        array = make()
                        known.append(array)
                        memory.append(target(array))
                event = self.enqueue(memory, (), events)
                if host is not None:
                    host.fetch(event)
                    queue.finish()
                    host.release()
                elif event is not None:
                    # It follows all other launches, and waiting for it is faster than `finish`.
                    if session.device.compute_units >= POLLING_UNITS:
                        self._poll(event)
                    event.wait()
            except BaseException:
                # The caller's arrays must not be in use once this is left, also by an error.
                queue.finish()
                raise
            finally:
                available.value = before
        if host is not None and events is not None:
            events.copies.extend(host.copies)
        return [known[place] for place in self._returns]

    def _poll(self, event: cl.Event) -> None:
        self.queue.flush()
        end = perf_counter() + POLLING_SECONDS
        while event.command_execution_status > 0 and perf_counter() < end:
            pass


def _access(runs: Sequence[BoundRun], place: int) -> str:
    """Return the name of the method of `HostMemory` for the array in a place; may be empty."""
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
