"""Running executables on arrays of the host: on their memory in place, or on copies of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.runtime import staging
from opencl_lab.runtime.bound import BoundSteps
from opencl_lab.runtime.executable import DeviceMemory, Executable
from opencl_lab.runtime.pointers import takes_pointers
from opencl_lab.runtime.recording import Fresh, Step
from opencl_lab.runtime.session import Session, session_of

FLAGS = cl.mem_flags
POLLING_UNITS = 8
POLLING = 1e-4
"""Seconds for which a call looks for its end before it sleeps, where that leaves enough units to
kernels. On 16 cores PoCL sorted 1,000 keys in 58 us so, in a trial, instead of 85."""

HostArray: TypeAlias = np.ndarray[Any, Any]


class HostMemory:
    """What kernels use in one call instead of arrays of the host.

    That is the memory of the array itself, by its address where a device takes it (see
    `takes_pointers`), or as a buffer made of it where device and host share memory; else pooled
    memory and copies, large ones through pinned memory. The caller holds the lock of the queue, and
    finishes it before he lets go of the arrays. `copies` are between memory of host and device;
    `pointers` says whether kernels get addresses.
    """

    __slots__ = ("_back", "_enqueued", "_queue", "_session", "_shared", "copies", "pointers")

    def __init__(self, session: Session, queue: cl.CommandQueue):
        self._queue = queue
        self._session = session
        self._shared = session.device.unified_memory
        self.pointers = takes_pointers(session.device)
        self._back: list[tuple[HostArray, DeviceMemory]] = []
        self.copies: list[cl.Event] = []
        # pyopencl waits for the event of a copy that nobody keeps, and holds up all threads.
        self._enqueued: list[cl.Event] = []

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

    def fetch(self, kernels: Sequence[cl.Event]) -> None:
        """Enqueue what brings all targets to the host after the last of some kernels.

        Nothing where they were used by address. Runtimes skip the copy where a buffer was made
        of the array and lives in its memory. Mapping it says the same in two commands, of which
        each costs PoCL hundredths of a millisecond.
        """
        waits = kernels[-1:]
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
        if self.pointers and array.flags.writeable:  # pyopencl shares no other
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


def run_host(
    executable: Executable, inputs: Mapping[str, Any], queue: cl.CommandQueue, out: dict[str, Any]
) -> tuple[dict[str, Any], list[cl.Event], list[cl.Event]]:
    """Run an executable on arrays of the host and wait for it.

    `inputs` has an array for every buffer of role ``in``; `out` those that receive outputs, the
    others are made. The caller holds the lock of the queue. Return all outputs by name, the
    launches in order, and what was copied.
    """
    plan, session = executable.plan, session_of(queue)
    for spec in plan.with_role("out"):
        if spec.name not in out:
            out[spec.name] = session.host_results.empty(spec.shape, spec.dtype)
    memory = HostMemory(session, queue)
    try:
        buffers = {
            spec.name: session.allocate(queue, max(spec.nbytes, 1))
            for spec in plan.with_role("scratch")
        }
        for spec in plan.with_role("in"):
            buffers[spec.name] = memory.source(np.ascontiguousarray(inputs[spec.name]))
        for spec in plan.with_role("out"):
            buffers[spec.name] = memory.target(out[spec.name])
        kernel_events = executable.enqueue(queue, buffers)
        memory.fetch(kernel_events)
    finally:
        # The arrays of the caller must not be in use once this returns, even by an error.
        queue.finish()
    return out, kernel_events, memory.copies


class HostSteps:
    """Recorded steps on arrays of the host, which are waited for once.

    The first places are arrays of the caller that were recorded; others have the same layout. Then
    come `fresh` ones, of which he gets those `returned`: others are memory of the device alone.
    Constants count from the end, the last one first, and stay as they are.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        steps: Sequence[Step],
        arrays: Sequence[HostArray],
        fresh: Sequence[Fresh],
        constants: Sequence[HostArray],
        returned: Collection[int],
    ):
        self._queue = queue
        self._session = session_of(queue)
        self._alone = self._session.alone(queue)
        self._access = [_access(steps, place) for place in range(len(arrays))]
        self._shareable = all(self._access) and all(
            a.flags.c_contiguous and a.flags.writeable for a in arrays
        )
        self._fresh = [(item, len(arrays) + index in returned) for index, item in enumerate(fresh)]
        self._constants = constants  # alive, as kernels may use them in place
        self._steps = steps
        self._bound: BoundSteps | None = None
        self._by_address = False

    def _bind(self, pointers: bool) -> BoundSteps:
        """Return the launches; again if it is known only now that the device takes addresses."""
        if self._bound is None or (self._constants and pointers != self._by_address):
            memory = [self._constant(array, pointers) for array in self._constants]
            places = len(self._access) + len(self._fresh)
            self._bound = BoundSteps(self._queue, self._steps, places, memory, addresses=True)
            self._by_address = pointers
        return self._bound

    def _constant(self, array: HostArray, pointers: bool) -> DeviceMemory:
        if pointers:
            return cl.SVM(array)
        flags = FLAGS.READ_ONLY | FLAGS.COPY_HOST_PTR
        return cl.Buffer(self._queue.context, flags, hostbuf=array)

    def run(self, arrays: Sequence[HostArray]) -> list[HostArray | None]:
        """Run them on arrays of the caller's, and return the new ones that it gets back."""
        with self._alone:
            if self._shareable and takes_pointers(self._session.device):
                shared = list(map(cl.SVM, arrays))
                if not any(map(_uneven, shared, arrays)):
                    return self._run_in_place(shared)
            return self._run_there(arrays)

    def _run_in_place(self, shared: Sequence[cl.SVM[Any]]) -> list[HostArray | None]:
        """Run them on arrays by their addresses alone: nothing is to be copied or mapped."""
        memory: list[DeviceMemory] = [*shared]
        made: list[HostArray | None] = []
        for item, returned in self._fresh:
            if returned:
                array = self._session.host_results.empty(item.shape, item.dtype)
                memory.append(cl.SVM(array))
                made.append(array)
            else:
                memory.append(self._session.allocate(self._queue, item.nbytes))
                made.append(None)
        try:
            # The order of the queue makes this the end of all; it takes less than `finish`.
            self._wait(self._bind(True).enqueue_alone(memory))
        except BaseException:
            self._queue.finish()
            raise
        return made

    def _wait(self, event: cl.Event) -> None:
        if self._session.device.compute_units >= POLLING_UNITS:
            self._queue.flush()
            end = perf_counter() + POLLING
            while event.command_execution_status > 0 and perf_counter() < end:
                pass
        event.wait()

    def _run_there(self, arrays: Sequence[HostArray]) -> list[HostArray | None]:
        """Run them on what `HostMemory` has for the arrays."""
        queue = self._queue
        made: list[HostArray | None] = []
        host = HostMemory(self._session, queue)
        try:
            memory = [
                getattr(host, access)(array) if access else None
                for access, array in zip(self._access, arrays, strict=True)
            ]
            for item, returned in self._fresh:
                if returned:
                    array = self._session.host_results.empty(item.shape, item.dtype)
                    memory.append(host.target(array))
                    made.append(array)
                else:
                    memory.append(self._session.allocate(queue, item.nbytes))
                    made.append(None)
            host.fetch([self._bind(host.pointers).enqueue_alone(memory)])
        finally:
            queue.finish()
        return made


def _access(steps: Sequence[Step], place: int) -> str:
    """Return which method of `HostMemory` serves an array that steps read or write; may be none."""
    read = written = False
    for step in steps:
        read = read or (not written and place in step.inputs.values())
        written = written or place in step.outputs.values()
    return {
        (True, True): "changed",
        (True, False): "source",
        (False, True): "target",
        (False, False): "",
    }[read, written]
