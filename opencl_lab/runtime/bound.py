"""Launches on one queue with numbered places for memory, which each call fills.

All kernels are enqueued this way. The first call of a key binds one executable after the other
(`execute`); a recorded call has all its executables bound at once. `DeviceCall` is for device
arrays, `HostCall` for host arrays.

    places     0 ..               .. count - 1    count ..              .. -2 -1
    memory of  the caller's  |   new arrays    |  what is fixed:     |  scratch memory, which
               arrays        |   (`Fresh`)     |  constants, counters|  each run takes from a pool

In a `BoundRun`, which is not bound yet, the places -1, -2 .. are those of the constants.

On an in-order queue most launches need no event, but pyopencl always makes one. On an H200 a launch
then takes 5.9 us instead of 4.4. So ``clEnqueueNDRangeKernel`` is called directly where it is found
in the library that pyopencl has loaded.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.plan import Launch
from opencl_lab.core.queues import check_process, profiles
from opencl_lab.runtime.executable import (
    DeviceMemory,
    Executable,
    explain,
    is_in_order,
    make_zero,
)
from opencl_lab.runtime.freeing import LEAST_ASKED, LOCK_SECONDS, free_unused, with_room
from opencl_lab.runtime.profiling import note
from opencl_lab.runtime.session import session_of

_Sizes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class BoundRun:
    """An executable, and the places of the arrays that it reads and writes, by name.

    Places number the caller's arrays first, then new ones. Those of constants are negative: -1 for
    the first one, -2 for the next one.
    """

    executable: Executable
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class Fresh:
    """An array that a call makes: a NumPy array on the host, plain memory on a device."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    allocator: Any = None


@dataclass(frozen=True)
class Returned:
    """An array that a call returns: one of the caller's, or a new one."""

    place: int
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes of a new device array, without its memory and events."""


@dataclass(frozen=True)
class Events:
    """The events of one run: those of launches, in order, and those of copies.

    On a queue with profiling each launch has one; elsewhere at least the last one has.
    """

    kernels: list[cl.Event] = field(default_factory=list)
    copies: list[cl.Event] = field(default_factory=list)


class _Launch(NamedTuple):
    kernel: cl.Kernel
    global_size: _Sizes
    local_size: _Sizes
    arguments: Sequence[tuple[int, int]]
    """Argument numbers and the places of their memory."""
    take: Callable[[Sequence[Any]], Sequence[Any]] | None
    """Returns number, memory, number, memory ... from all places, to set all in one call."""
    start: Callable[[], int] | None
    """Enqueues the kernel without an event and returns the driver's status; None if impossible."""


_enqueue = cl.enqueue_nd_range_kernel
# pyopencl guesses the type of an argument, which takes 2 us where a buffer follows an address.
_set_address = getattr(cl.Kernel, "_set_arg_svm", cl.Kernel.set_arg)
_set = cl.Kernel.set_arg
_SVM = cl.SVM
# All arguments in one call: a quarter of the time, but without addresses.
_set_all: Any = getattr(cl.Kernel, "_set_arg_multi", None)


@cache
def _driver_enqueue() -> Callable[..., int] | None:
    """Return ``clEnqueueNDRangeKernel`` of the library that pyopencl uses, or None."""
    try:
        # `PyDLL` holds the GIL, as pyopencl does: no other thread sets arguments meanwhile.
        function = ctypes.PyDLL(cl._cl.__file__).clEnqueueNDRangeKernel
    except (OSError, AttributeError):  # the library is linked statically, or its symbols are hidden
        return None
    function.restype = ctypes.c_int
    return function


def _starter(queue: cl.CommandQueue) -> Callable[..., int] | None:
    """Return the function that enqueues launches without events, or None to use events.

    Events are used where they are cheap (drivers of CPUs), where they give times (queues with
    profiling), and where each launch waits for the previous one (out-of-order queues).
    """
    profiling = queue.properties & cl.command_queue_properties.PROFILING_ENABLE
    if profiling or not is_in_order(queue) or session_of(queue).device.unified_memory:
        return None
    return _driver_enqueue()


class BoundCall(ABC):
    """Runs of executables on one queue, bound to places of memory.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    runs : sequence of Run
        One or more; exactly one on an out-of-order queue.
    arrays : int
        Number of the caller's arrays, which have the first places.
    fresh : sequence of Fresh
        New arrays, in the places after those. If no result lies in one, it is scratch memory on the
        device, which is reused after the call.
    results : sequence of Result
    constants : sequence of pyopencl.Buffer
        Buffers that every call reads.
    """

    on_host: ClassVar[bool] = False
    """Whether it is for host arrays, whose addresses (`pyopencl.SVM`) may serve as memory."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        runs: Sequence[BoundRun],
        arrays: int,
        fresh: Sequence[Fresh],
        results: Sequence[Returned],
        constants: Sequence[DeviceMemory] = (),
    ):
        self.queue = queue
        self._session = session = session_of(queue)
        self._pool = session.pool(queue)  # safe for scratch memory too, as the queue is in-order
        self._lock, self._available = session.lock(queue), session.available
        self._in_order = is_in_order(queue)
        self._starter = _starter(queue)
        self._one_by_one = self.on_host or _set_all is None
        self._results = tuple(results)
        self._fresh = tuple(fresh)
        self._returned = {item.place for item in results}
        read = {place for run in runs for place in run.inputs.values()}
        written = {place for run in runs for place in run.outputs.values()}
        self._repeatable = not any(0 <= place < arrays for place in read & written)
        pooled = {p: f.nbytes for p, f in enumerate(fresh, arrays) if f.allocator is None}
        self._passing = [item for item in pooled.items() if item[0] not in self._returned]
        self._arrays, self._count = arrays, arrays + len(fresh)
        self._fixed: list[Any] = list(constants)  # memory in the last places
        self._zeros: list[cl.Buffer] = []  # those that only a complete plan leaves zero
        self._runs = list(map(self._bind, runs))
        if session.device.unified_memory:  # all of it, before anything is taken
            needs = sum(item.nbytes for item in fresh)
            needs += max(sum(scratch) for _, _, scratch in self._runs)
            with_room(lambda: None, max(needs, LEAST_ASKED))
        launches = self._runs[-1][1]
        # Pooled results make their event lazily.
        needs_event = self.on_host or not self._returned <= pooled.keys()
        if needs_event and launches:
            launches[-1] = launches[-1]._replace(start=None)

    def _bind(self, run: BoundRun) -> tuple[Any, list[_Launch], list[int]]:
        """Return the lock of an executable, its launches, and the bytes of each scratch buffer."""
        executable = run.executable
        places = {
            name: place if place >= 0 else self._count - 1 - place
            for name, place in (*run.inputs.items(), *run.outputs.items())
        }
        for name, zeros in executable.zeros_of(self.queue).items():
            places[name] = self._fix(zeros)
            self._zeros.append(zeros)
        scratch = [max(spec.nbytes, 1) for spec in executable.plan.with_role("scratch")]
        for index, spec in enumerate(executable.plan.with_role("scratch")):
            places[spec.name] = index - len(scratch)  # negative: from the end
        launches = [
            self._launch(kernel, launch, [(index, places[name]) for index, name in variable])
            for kernel, launch, variable in executable.launches
        ]
        return executable.lock, launches, scratch

    def _fix(self, item: Any) -> int:
        """Return the place of what is the same in every call."""
        self._fixed.append(item)
        return self._count + len(self._fixed) - 1

    def _launch(
        self, kernel: cl.Kernel, launch: Launch, arguments: Sequence[tuple[int, int]]
    ) -> _Launch:
        global_size, local_size = launch.global_size, launch.local_size
        take = None
        if arguments and not self._one_by_one:
            numbered = [(self._fix(index), place) for index, place in arguments]
            take = itemgetter(*chain.from_iterable(numbered))
        start = self._starter and partial(
            self._starter,
            ctypes.c_void_p(self.queue.int_ptr),
            ctypes.c_void_p(kernel.int_ptr),
            ctypes.c_uint(len(global_size)),
            None,  # no offsets
            (ctypes.c_size_t * len(global_size))(*global_size),
            (ctypes.c_size_t * len(local_size))(*local_size),
            ctypes.c_uint(0),  # nothing to wait for
            None,
            None,  # no event
        )
        return _Launch(kernel, global_size, local_size, arguments, take, start)

    def run(self, arrays: Sequence[Any], events: Events | None = None) -> list[Any]:
        """Run it on the caller's arrays and return the results.

        If memory runs out, all idle memory and caches are freed, and it is tried once more, unless
        it may have changed what it reads.

        Raises
        ------
        LaunchError
            If the driver refuses, or in a process that was forked after OpenCL had started.
        """
        check_process()
        run = self._noted if profiles else self._run
        try:
            try:
                return run(arrays, events)
            except cl.MemoryError:
                if not self._repeatable:
                    raise
            # Retried here, where the frames of the error hold no memory.
            free_unused(LOCK_SECONDS)
            return run(arrays, events)
        except cl.Error as error:
            raise explain(error, self.queue) from error

    def _noted(self, arrays: Sequence[Any], events: Events | None) -> list[Any]:
        """Run it once and add its launches to the active profiles."""
        events = events or Events()
        results = self._run(arrays, events)
        kernels = [launch.kernel for _, launches, _ in self._runs for launch in launches]
        note(self.queue, kernels, events.kernels, events.copies)
        return results

    @abstractmethod
    def _run(self, arrays: Sequence[Any], events: Events | None) -> list[Any]:
        """Run it once; see `run`."""

    def enqueue(
        self,
        memory: list[DeviceMemory],
        wait_for: Sequence[cl.Event] = (),
        events: Events | None = None,
    ) -> Any:
        """Enqueue all launches; the caller holds the lock of the queue.

        `memory` has an item for each place, of the caller's arrays and of new ones. The first
        launch waits for the given events. Return the event of the last launch, or None.
        """
        queue, pool, in_order = self.queue, self._pool, self._in_order
        given = memory + self._fixed
        event = None
        try:
            if not in_order:  # earlier commands may still use the scratch memory
                wait_for = [*wait_for, cl.enqueue_barrier(queue)]
            waits = wait_for or None
            for lock, launches, scratch in self._runs:
                places = given
                if scratch:
                    blocks = list(map(pool.take, scratch))
                    places = given + blocks
                with lock:
                    for kernel, global_size, local_size, arguments, take, start in launches:
                        if take is not None:
                            _set_all(kernel, take(places))
                        else:
                            for index, place in arguments:
                                block = places[place]
                                set_argument = _set_address if type(block) is _SVM else _set
                                set_argument(kernel, index, block)
                        # If the driver refuses, pyopencl tries again and raises the error.
                        if start is None or waits or start():
                            event = _enqueue(queue, kernel, global_size, local_size, None, waits)
                            waits = None if in_order else [event]
                            if events is not None:
                                events.kernels.append(event)
                        else:
                            event = None
                if scratch:
                    for nbytes, block in zip(scratch, blocks, strict=True):
                        pool.give(nbytes, block)
        except BaseException:
            make_zero(queue, self._zeros)
            raise
        for place, nbytes in self._passing:
            pool.give(nbytes, memory[place])
        return event
