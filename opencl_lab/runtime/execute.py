"""Running a plan on arrays of the host or of the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import LaunchError
from opencl_lab.runtime.executable import DeviceMemory, Executable, KernelInfo, is_in_order
from opencl_lab.runtime.host import run_host
from opencl_lab.runtime.kept import with_room
from opencl_lab.runtime.recording import LOCAL
from opencl_lab.runtime.session import Session, session_of

COMPLETE = cl.command_execution_status.COMPLETE


@dataclass
class Execution:
    """One run of a plan: its outputs by name and the events that time it."""

    executable: Executable
    outputs: dict[str, Any]
    kernel_events: list[cl.Event] = field(default_factory=list)
    transfer_events: list[cl.Event] = field(default_factory=list)

    def profile(self) -> list[tuple[KernelInfo, float]]:
        """Return each launch's kernel and its time in milliseconds, in order; waits for them."""
        times = [_milliseconds([event]) for event in self.kernel_events]
        return list(zip(self.executable.kernel_info(), times, strict=True))

    @property
    def kernel_ms(self) -> float:
        """Time inside kernels in milliseconds, from their events; waits for them."""
        return _milliseconds(self.kernel_events)

    @property
    def transfer_ms(self) -> float:
        """Time in copies between host and device in milliseconds, 0 for shared memory."""
        return _milliseconds(self.transfer_events)


def _milliseconds(events: list[cl.Event]) -> float:
    try:
        if events:
            cl.wait_for_events(events)
        return sum(event.profile.end - event.profile.start for event in events) * 1e-6
    except cl.Error as error:
        raise LaunchError(
            f"no times: {error}; was the queue made with profiling enabled?"
        ) from error


def execute(
    executable: Executable,
    inputs: Mapping[str, Any],
    queue: cl.CommandQueue,
    out: Mapping[str, Any] | None = None,
) -> Execution:
    """Run an executable on C-contiguous arrays, all of the host or all of the device.

    `inputs` has an array for every buffer of role ``in``, of its shape and dtype; `out` those that
    receive outputs, which must not share memory with inputs. The queue may be out of order, too:
    then it is one launch after the other. With host arrays the outputs are ready; with device
    arrays the work is enqueued and the outputs carry its last event. `LaunchError` says what the
    device refuses.
    """
    out = out or {}
    given = frozenset(out)
    arrays = (*inputs.values(), *out.values())  # a kernel may need no input
    on_device = any(isinstance(array, cl.array.Array) for array in arrays)
    try:
        run = _run_device if on_device else _run_host
        with session_of(queue).alone(queue):
            execution = with_room(lambda: run(executable, inputs, queue, dict(out)))
    except cl.Error as error:
        raise explain(error, queue) from error
    recorder = LOCAL.recorder
    if recorder is not None:
        recorder.step(executable, inputs, execution.outputs, given, queue)
    return execution


def explain(error: cl.Error, queue: cl.CommandQueue) -> LaunchError:
    """Return an error of the driver as one of this package."""
    name = queue.device.name.strip()
    if isinstance(error, cl.MemoryError):
        return LaunchError(f"{name} ran out of memory: {error}")
    return LaunchError(f"the launch failed on {name}: {error}")


def pending(arrays: Iterable[Any], queue: cl.CommandQueue) -> list[cl.Event]:
    """Return the events that the contents of device arrays still wait for.

    Commands of other queues are flushed: until then no other queue may wait for them. Those of an
    in-order queue wait for each other anyway, but an error should be seen. Arrays forget events
    that are complete, or each call would look at them again.
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


def _run_host(
    executable: Executable, inputs: Mapping[str, Any], queue: cl.CommandQueue, out: dict[str, Any]
) -> Execution:
    return Execution(executable, *run_host(executable, inputs, queue, out))


def _run_device(
    executable: Executable, inputs: Mapping[str, Any], queue: cl.CommandQueue, out: dict[str, Any]
) -> Execution:
    plan, session = executable.plan, session_of(queue)
    waits = pending((*inputs.values(), *out.values()), queue)
    for spec in plan.with_role("out"):
        if spec.name not in out:
            allocator = next(iter(inputs.values())).allocator
            out[spec.name] = cl.array.empty(queue, spec.shape, spec.dtype, allocator=allocator)
    buffers: dict[str, DeviceMemory] = {
        name: array.base_data if array.size else session.allocate(queue, 1)
        for name, array in {**inputs, **out}.items()
    }
    buffers.update(_scratch(executable, session, queue))
    events = executable.enqueue(queue, buffers, waits)
    for name in out:
        if events:
            out[name].add_event(events[-1])
    return Execution(executable, out, events)


def _scratch(
    executable: Executable, session: Session, queue: cl.CommandQueue
) -> dict[str, DeviceMemory]:
    return {
        spec.name: session.allocate(queue, max(spec.nbytes, 1))
        for spec in executable.plan.with_role("scratch")
    }
