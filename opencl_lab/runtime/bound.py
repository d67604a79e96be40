"""Launches whose arguments are bound to places, so that a call only fills the places."""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from opencl_lab.runtime.executable import DeviceMemory
from opencl_lab.runtime.recording import Step
from opencl_lab.runtime.session import session_of

__all__ = ["BoundSteps"]

# pyopencl tries what an argument may be, and takes 2 us wherever a buffer follows an address.
_set_address = getattr(cl.Kernel, "_set_arg_svm", cl.Kernel.set_arg)
_set = cl.Kernel.set_arg


class BoundSteps:
    """The launches of recorded steps on one in-order queue, ready to enqueue on other memory.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    steps : sequence of Step
        At least one. Their places are those of the memory that `enqueue` takes; below zero they
        count `constants` from the end.
    memory : int
        How many places there are.
    constants : sequence of device memory
        What the call has put on the device itself, the last one first.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        steps: Sequence[Step],
        memory: int,
        constants: Sequence[DeviceMemory] = (),
    ):
        self._queue = queue
        session = session_of(queue)
        self._pool = session.results(queue)  # the order of the queue makes it safe for scratch too
        self._alone = session.alone(queue)
        self._fixed: list[DeviceMemory] = []
        self._steps = []
        for step in steps:
            places = {
                name: place if place >= 0 else self._fix(memory, constants[place])
                for name, place in step.places
            }
            for name, zeros in step.executable.zeros_of(queue).items():
                places[name] = self._fix(memory, zeros)
            scratch: list[int] = []
            for spec in step.executable.plan.with_role("scratch"):
                places[spec.name] = -1 - len(scratch)
                scratch.append(max(spec.nbytes, 1))
            launches = step.executable.bound(places)
            self._steps.append((step.executable.lock, launches, scratch[::-1]))

    def _fix(self, memory: int, buffer: DeviceMemory) -> int:
        self._fixed.append(buffer)
        return memory + len(self._fixed) - 1

    def enqueue(self, memory: Sequence[DeviceMemory], wait_for: Sequence[cl.Event]) -> cl.Event:
        """Enqueue all launches on the buffers of all places, and return the last one's event.

        The first launch waits for the given events.
        """
        with self._alone:
            return self.enqueue_alone(memory, wait_for)

    def enqueue_alone(
        self, memory: Sequence[DeviceMemory], wait_for: Sequence[cl.Event] = ()
    ) -> cl.Event:
        """Do what `enqueue` does for somebody who has the lock of the queue."""
        queue, pool = self._queue, self._pool
        waits = list(wait_for) if wait_for else None
        given = [*memory, *self._fixed]
        enqueue, event = cl.enqueue_nd_range_kernel, None
        for lock, launches, scratch in self._steps:
            buffers, blocks = given, None
            if scratch:
                blocks = [pool.take(nbytes) for nbytes in scratch]
                buffers = given + blocks  # they count from the end
            with lock:
                for kernel, global_size, local_size, arguments in launches:
                    for index, place in arguments:
                        block = buffers[place]
                        set_argument = _set_address if type(block) is cl.SVM else _set
                        set_argument(kernel, index, block)
                    event = enqueue(queue, kernel, global_size, local_size, None, waits)
                    waits = None
            if blocks:
                for nbytes, taken in zip(scratch, blocks, strict=True):
                    pool.give(nbytes, taken)
        assert event is not None  # a recording of no launch at all is none
        return event
