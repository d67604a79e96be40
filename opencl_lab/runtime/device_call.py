"""Bound calls on device arrays: they enqueue and do not wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyopencl as cl
import pyopencl.array

from opencl_lab.runtime.bound import BoundCall, Events
from opencl_lab.runtime.executable import is_in_order
from opencl_lab.runtime.results import PooledArray

COMPLETE = cl.command_execution_status.COMPLETE


def pending(arrays: Iterable[Any], queue: cl.CommandQueue) -> list[cl.Event]:
    """Return the pending events of device arrays.

    Other queues are flushed, as OpenCL requires before one queue waits for another. Events of the
    same in-order queue need no wait, but waiting reveals errors. Completed events are removed from
    the arrays, so that later calls need not check them again.
    """
    waits = []
    for array in arrays:
        complete = True
        for event in array.events:
            status = event.command_execution_status
            if status == COMPLETE:
                continue
            complete = False
            other = event.command_queue  # a user event has none
            if other == queue and status >= 0 and is_in_order(queue):
                continue
            waits.append(event)
            if other is not None and other != queue:
                other.flush()
        if complete:
            del array.events[:]
    return waits


class DeviceCall(BoundCall):
    """A bound call on device arrays.

    New arrays use memory from the queue's pool, unless they have an allocator.
    """

    _own_events: Sequence[cl.Event] = ()
    """The event of the previous call's last launch, which needs no wait."""

    def _run(self, arrays: Sequence[Any], events: Events | None) -> list[Any]:
        queue, pool = self.queue, self._pool
        memory: list[Any] = []
        waits: list[cl.Event] = []
        elsewhere: list[Any] = []
        for array in arrays:
            own = array.__dict__
            lease = own.get("_lease")
            # The user may have set another queue.
            if lease is not None and own["queue"] is queue is lease.pool.queue:
                memory.append(lease.block)  # written by a command of this queue
                continue
            block = array.base_data
            if block is None:  # OpenCL has no empty buffers
                with pool.exclusive():
                    block = pool.take(1)
                pool.give(1, block)  # no kernel reads or writes it
            memory.append(block)
            written = array.events
            if written and written != self._own_events:
                waits += pending((array,), queue)
            if own["queue"] is not queue and own["queue"] not in (None, queue):
                elsewhere.append(array)
        available = self._available
        with self._lock:
            before, available.value = available.value, 1
            try:
                for item in self._fresh:
                    take = item.allocator or pool.take
                    memory.append(take(item.nbytes))
                event = self.enqueue(memory, waits, events)
                if elsewhere and event is None:
                    event = cl.enqueue_marker(queue)
            finally:
                available.value = before
        done = [] if event is None else [event]
        for array in elsewhere:  # its own queue must not write to it before
            # The event of a copy waits if it is dropped.
            array.events[:] = [
                *(item for item in array.events if type(item) is not cl.Event),
                *done,
            ]
        self._own_events = done or self._own_events
        results = []
        for result in self._results:
            place = result.place
            if place < self._arrays:
                array = arrays[place]
                if done:  # it waited for all events of the array
                    array.events[:] = done
            elif self._fresh[place - self._arrays].allocator is None:
                array = PooledArray.of(pool, memory[place], result.attributes, event)
            else:
                array = cl.array.Array.__new__(cl.array.Array)
                vars(array).update(result.attributes, base_data=memory[place], events=done)
            results.append(array)
        return results
