"""Running a plan on host or device arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Launch
from opencl_lab.core.queues import within_gate
from opencl_lab.runtime.bound import BoundCall, BoundRun, Events, Fresh, Returned
from opencl_lab.runtime.device_call import DeviceCall
from opencl_lab.runtime.executable import Executable, explain
from opencl_lab.runtime.host_call import HostCall, plain_types
from opencl_lab.runtime.session import new_array

MOST_BOUND = 32
"""Most bound calls cached per executable: one for each queue, side of the arrays and `out`."""

C = TypeVar("C", bound=BoundCall)


@dataclass
class Execution:
    """One run of a plan: its outputs by name and the events that time it.

    On a queue with profiling, `kernel_events` has one per launch, in order.
    """

    executable: Executable
    outputs: dict[str, Any]
    kernel_events: list[cl.Event] = field(default_factory=list)
    transfer_events: list[cl.Event] = field(default_factory=list)

    def profile(self) -> list[tuple[Launch, float]]:
        """Wait; return each launch and its time in milliseconds, in order."""
        times = [self._milliseconds([event]) for event in self.kernel_events]
        return list(zip(self.executable.plan.launches, times, strict=True))

    @property
    def kernel_ms(self) -> float:
        """Time inside kernels in milliseconds, from their events; waits for them."""
        return self._milliseconds(self.kernel_events)

    @property
    def transfer_ms(self) -> float:
        """Time in copies between host and device in milliseconds, 0 for shared memory."""
        return self._milliseconds(self.transfer_events)

    def _milliseconds(self, events: list[cl.Event]) -> float:
        try:
            if events:
                kernel, *_ = self.executable.launches[0]
                with within_gate(kernel.context.devices[0]):
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
    """Run an executable on C-contiguous arrays, all on the host or all on the device.

    `inputs` has an array for every buffer of role ``in``, of its shape and dtype; `out` has arrays
    that receive outputs, which must not share memory with inputs. On an out-of-order queue each
    launch waits for the previous one. With host arrays the outputs are ready; with device arrays
    the work is enqueued and the outputs carry its last event. A failure on the device raises
    `LaunchError`.
    """
    out = dict(out or {})
    known, outputs = executable.plan.by_name, executable.plan.with_role("out")
    given = {name: array for name, array in inputs.items() if name in known}
    events = Events()
    call: BoundCall
    try:
        # All inputs tell the side, also those that no kernel of this plan reads.
        if any(isinstance(array, cl.array.Array) for array in (*inputs.values(), *out.values())):
            given |= out
            for spec in outputs:
                if spec.name not in given:
                    allocator = next(iter(inputs.values())).allocator
                    given[spec.name] = new_array(queue, spec.shape, spec.dtype, allocator)
            call = device_call(executable, queue, tuple(given))
        else:
            given = {
                name: np.ascontiguousarray(array, array.dtype.newbyteorder("="))
                for name, array in given.items()
            } | out
            call = _host_call(executable, queue, tuple(given), plain_types(given.values()))
        results = call.run(tuple(given.values()), events)
    except cl.Error as error:
        raise explain(error, queue) from error
    names = (spec.name for spec in outputs)
    return Execution(
        executable, dict(zip(names, results, strict=True)), events.kernels, events.copies
    )


def device_call(executable: Executable, queue: cl.CommandQueue, names: Sequence[str]) -> DeviceCall:
    """Return an executable bound for device arrays: its inputs, then all outputs."""
    key = (queue.int_ptr, *names)
    call: DeviceCall | None = executable.bound_calls.get(key)
    if call is None:
        call = _keep(executable, key, DeviceCall(queue, *_bound(executable, names)))
    return call


def _host_call(
    executable: Executable,
    queue: cl.CommandQueue,
    names: Sequence[str],
    types: Sequence[np.dtype[Any]] | None,
) -> HostCall:
    key = (queue.int_ptr, types, *names)
    call: HostCall | None = executable.bound_calls.get(key)
    if call is None:
        call = _keep(executable, key, HostCall(queue, *_bound(executable, names), types=types))
    return call


def _bound(
    executable: Executable, names: Sequence[str]
) -> tuple[Sequence[BoundRun], int, Sequence[Fresh], Sequence[Returned]]:
    """Return the arguments of a bound call of one executable; results are its outputs in order."""
    plan, places = executable.plan, {name: place for place, name in enumerate(names)}
    new = [spec for spec in plan.with_role("out") if spec.name not in places]
    everything = places | {spec.name: place for place, spec in enumerate(new, len(names))}
    outputs = {spec.name: everything[spec.name] for spec in plan.with_role("out")}
    inputs = {name: place for name, place in places.items() if name not in outputs}
    results = [Returned(place) for place in outputs.values()]
    fresh = [Fresh(spec.shape, spec.dtype, spec.nbytes) for spec in new]
    return (BoundRun(executable, inputs, outputs),), len(names), fresh, results


def _keep(executable: Executable, key: Hashable, call: C) -> C:
    if len(executable.bound_calls) >= MOST_BOUND:  # each holds a reference to its queue
        executable.bound_calls.clear()
    executable.bound_calls[key] = call
    return call
