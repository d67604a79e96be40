"""Running a plan on arrays of the host or of the device."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Buffer
from opencl_lab.runtime.bound import BoundCall, Events, Fresh, Result, Run
from opencl_lab.runtime.cache import new_array
from opencl_lab.runtime.device_call import DeviceCall
from opencl_lab.runtime.executable import Executable, KernelInfo, explain, is_in_order
from opencl_lab.runtime.host_call import HostCall
from opencl_lab.runtime.results import new_attributes

MOST_BOUND = 32
"""Bound calls that an executable keeps: one for each queue, side of the arrays and given `out`."""

C = TypeVar("C", bound=BoundCall)


@dataclass
class Execution:
    """One run of a plan: its outputs by name and the events that time it.

    `kernel_events` are those of all launches, in order, where the queue profiles.
    """

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
    given = dict(out or {})
    arrays = (*inputs.values(), *given.values())  # a kernel may need no input
    events = Events()
    call: BoundCall
    try:
        if any(isinstance(array, cl.array.Array) for array in arrays):
            _make_unpooled(executable, inputs, given, queue)
            call = device_call(executable, queue, tuple(inputs), tuple(given))
            arrays = (*inputs.values(), *given.values())
        else:
            arrays = (*map(np.ascontiguousarray, inputs.values()), *given.values())
            in_place = all(array.size and array.flags.writeable for array in arrays)
            call = _host_call(executable, queue, tuple(inputs), tuple(given), in_place)
        results = call.run(arrays, events)
    except cl.Error as error:
        raise explain(error, queue) from error
    names = (*given, *(spec.name for spec in _not_given(executable, given)))
    outputs = dict(zip(names, results, strict=True))
    return Execution(executable, outputs, events.kernels, events.copies)


def _not_given(executable: Executable, given: Container[str]) -> list[Buffer]:
    return [spec for spec in executable.plan.with_role("out") if spec.name not in given]


def _make_unpooled(
    executable: Executable, inputs: Mapping[str, Any], out: dict[str, Any], queue: cl.CommandQueue
) -> None:
    """Make the outputs on the device that cannot lie in the pool of the queue."""
    for spec in _not_given(executable, out):
        allocator = next(iter(inputs.values())).allocator
        if allocator is not None or not spec.nbytes or not is_in_order(queue):
            out[spec.name] = new_array(queue, spec.shape, spec.dtype, allocator)


def device_call(
    executable: Executable, queue: cl.CommandQueue, inputs: tuple[str, ...], out: tuple[str, ...]
) -> DeviceCall:
    """Return an executable bound for device arrays, in this order: its inputs and given outputs."""
    key = (queue.int_ptr, inputs, out)
    call: DeviceCall | None = executable.bound_calls.get(key)
    if call is None:
        bound = _bound(executable, inputs, out, partial(new_attributes, queue))
        call = _keep(executable, key, DeviceCall(queue, *bound))
    return call


def _host_call(
    executable: Executable,
    queue: cl.CommandQueue,
    inputs: tuple[str, ...],
    out: tuple[str, ...],
    in_place: bool,
) -> HostCall:
    key = (queue.int_ptr, inputs, out, in_place)
    call: HostCall | None = executable.bound_calls.get(key)
    if call is None:
        bound = _bound(executable, inputs, out, lambda shape, dtype: {})
        call = _keep(executable, key, HostCall(queue, *bound, in_place=in_place))
    return call


def _bound(
    executable: Executable,
    inputs: Sequence[str],
    out: Sequence[str],
    attributes: Callable[[tuple[int, ...], np.dtype[Any]], dict[str, Any]],
) -> tuple[Sequence[Run], int, Sequence[Fresh], Sequence[Result]]:
    """Return what a bound call takes, for one executable all of whose outputs are returned."""
    made = _not_given(executable, out)
    arrays = len(inputs) + len(out)
    names = (*out, *(spec.name for spec in made))
    outputs = {name: place for place, name in enumerate(names, len(inputs))}
    run = Run(executable, {name: place for place, name in enumerate(inputs)}, outputs)
    results = []
    for name, place in outputs.items():
        spec = executable.plan.by_name[name]
        new = {} if place < arrays else attributes(spec.shape, spec.dtype)
        results.append(Result(place, spec.shape, spec.dtype, True, new))
    fresh = [Fresh(spec.shape, spec.dtype, spec.nbytes) for spec in made]
    return (run,), arrays, fresh, results


def _keep(executable: Executable, key: Hashable, call: C) -> C:
    if len(executable.bound_calls) >= MOST_BOUND:  # each keeps its queue alive
        executable.bound_calls.clear()
    executable.bound_calls[key] = call
    return call
