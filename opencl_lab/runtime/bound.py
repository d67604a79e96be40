"""Launches whose arguments are bound to places, so that a call only fills the places.

Launches need no event where the order of the queue says it all, but pyopencl always makes one. On
an H200 a launch then takes 5.9 us instead of 4.4. So the driver's own function is called where it
is found in the library that pyopencl has loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import pyopencl as cl

from opencl_lab.runtime.executable import BoundLaunch, DeviceMemory, make_zero
from opencl_lab.runtime.recording import Step
from opencl_lab.runtime.session import session_of

_Sizes: TypeAlias = tuple[int, ...]


class _Launch(NamedTuple):
    kernel: cl.Kernel
    global_size: _Sizes
    local_size: _Sizes
    arguments: Sequence[tuple[int, int]]
    """Their numbers and the places of their memory."""
    take: Callable[[Sequence[Any]], Sequence[Any]] | None
    """Takes number, memory, number, memory ... out of all places, to set all in one call."""
    start: Callable[[], int] | None
    """Enqueues it without an event, if anything does, and returns the driver's code."""


_enqueue = cl.enqueue_nd_range_kernel
# pyopencl tries what an argument may be, and takes 2 us wherever a buffer follows an address.
_set_address = getattr(cl.Kernel, "_set_arg_svm", cl.Kernel.set_arg)
_set = cl.Kernel.set_arg
# All arguments in one call: a fourth of the time, but it takes no addresses.
_set_all: Any = getattr(cl.Kernel, "_set_arg_multi", None)


@cache
def _driver_enqueue() -> Callable[..., int] | None:
    """Return ``clEnqueueNDRangeKernel`` of the library that pyopencl uses, or None."""
    try:
        # It keeps the interpreter's lock, as pyopencl does: no other thread sets arguments then.
        function = ctypes.PyDLL(cl._cl.__file__).clEnqueueNDRangeKernel
    except (OSError, AttributeError):  # it is linked in, or hidden
        return None
    function.restype = ctypes.c_int
    return function


def _starter(queue: cl.CommandQueue) -> Callable[..., int] | None:
    """Return what enqueues launches without events, or None where events are to be had.

    Drivers of CPUs make them cheaply, and on a queue with profiling they tell times.
    """
    profiling = queue.properties & cl.command_queue_properties.PROFILING_ENABLE
    if profiling or session_of(queue).device.unified_memory:
        return None
    return _driver_enqueue()


class BoundSteps:
    """The launches of recorded steps on one in-order queue, ready to enqueue on other memory.

    There is at least one step. Places are those of the memory that `enqueue` takes, `memory` in
    number; below zero they count `constants`, what the call has put on the device itself, from the
    end: the last one first. There may be `addresses` of the host (`pyopencl.SVM`) among the memory.
    If it `needs_event`, somebody waits for the last launch by that.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        steps: Sequence[Step],
        memory: int,
        constants: Sequence[DeviceMemory] = (),
        addresses: bool = False,
        needs_event: bool = True,
    ):
        self._queue = queue
        session = session_of(queue)
        self._pool = session.results(queue)  # the order of the queue makes it safe for scratch too
        self._alone = session.alone(queue)
        self._starter = _starter(queue)
        self._one_by_one = addresses or _set_all is None
        self._memory = memory
        self._fixed: list[Any] = []  # in the places behind
        self._zeros: list[cl.Buffer] = []  # those of them that only whole plans leave zero
        self._steps = []
        for step in steps:
            places = {
                name: place if place >= 0 else self._fix(constants[place])
                for name, place in step.places
            }
            for name, zeros in step.executable.zeros_of(queue).items():
                places[name] = self._fix(zeros)
                self._zeros.append(zeros)
            scratch: list[int] = []
            for spec in step.executable.plan.with_role("scratch"):
                places[spec.name] = -1 - len(scratch)
                scratch.append(max(spec.nbytes, 1))
            launches = [self._launch(launch) for launch in step.executable.bound(places)]
            self._steps.append((step.executable.lock, launches, scratch[::-1]))
        if needs_event:
            launches[-1] = launches[-1]._replace(start=None)

    def _fix(self, item: Any) -> int:
        self._fixed.append(item)
        return self._memory + len(self._fixed) - 1

    def _launch(self, launch: BoundLaunch) -> _Launch:
        kernel, global_size, local_size, arguments = launch
        take = None
        if arguments and not self._one_by_one:
            numbered = [(self._fix(index), place) for index, place in arguments]
            take = itemgetter(*chain.from_iterable(numbered))
        start = self._starter and partial(
            self._starter,
            ctypes.c_void_p(self._queue.int_ptr),
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

    def enqueue(self, memory: Sequence[DeviceMemory], wait_for: Sequence[cl.Event] = ()) -> Any:
        """Enqueue all launches on the buffers of all places, and return the last one's event.

        The first launch waits for the given events. What is returned may be None if no event is
        needed.
        """
        with self._alone:
            return self.enqueue_alone(memory, wait_for)

    def enqueue_alone(
        self, memory: Sequence[DeviceMemory], wait_for: Sequence[cl.Event] = ()
    ) -> Any:
        """Do what `enqueue` does for somebody who has the lock of the queue."""
        try:
            return self._enqueue_all(memory, wait_for)
        except BaseException:
            make_zero(self._queue, self._zeros)
            raise

    def _enqueue_all(self, memory: Sequence[DeviceMemory], wait_for: Sequence[cl.Event]) -> Any:
        queue, pool = self._queue, self._pool
        waits = wait_for or None
        given = [*memory, *self._fixed]
        event = None
        for lock, launches, scratch in self._steps:
            places, blocks = given, None
            if scratch:
                blocks = [pool.take(nbytes) for nbytes in scratch]
                places = given + blocks  # they count from the end
            with lock:
                for kernel, global_size, local_size, arguments, take, start in launches:
                    if take is not None:
                        _set_all(kernel, take(places))
                    else:
                        for index, place in arguments:
                            block = places[place]
                            set_argument = _set_address if type(block) is cl.SVM else _set
                            set_argument(kernel, index, block)
                    # What the driver refuses is tried by pyopencl, which says why.
                    if start is None or waits or start():
                        event = _enqueue(queue, kernel, global_size, local_size, None, waits)
                        waits = None
                    else:
                        event = None
            if blocks:
                for nbytes, taken in zip(scratch, blocks, strict=True):
                    pool.give(nbytes, taken)
        return event
