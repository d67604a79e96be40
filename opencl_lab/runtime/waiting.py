"""Events that a call waits for before its first launch.

One barrier on the queue of the call waits for all of them. So nothing else needs to know of them:
neither recorded calls nor helpers that enqueue, and calls without such events are as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from reprlib import repr as shown
from typing import Any, ParamSpec, TypeAlias, TypeVar

import pyopencl as cl

from opencl_lab.core.errors import InvalidProblem, LaunchError
from opencl_lab.core.queues import check_process, gate_of, within_gate
from opencl_lab.drivers.discovery import select_device
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.session import session_of

WaitFor: TypeAlias = cl.Event | Iterable[cl.Event] | None
"""Argument of functions that take device arrays: what the first launch waits for."""

FAILED = "an event of wait_for has failed"

P = ParamSpec("P")
R = TypeVar("R")


def after_events(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose `wait_for` works; `function` itself has it without effect."""

    @wraps(function)
    def public(*args: P.args, **kwargs: P.kwargs) -> Any:
        if kwargs.get("wait_for") is not None:
            return call_after(public, args, kwargs)
        return function(*args, **kwargs)

    return public


def call_after(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    queue: cl.CommandQueue | None = None,
) -> Any:
    """Call a public function whose first launch waits for the events of `wait_for`.

    `queue` is where it works if that is not in the arguments. A call on host arrays waits for the
    events first.
    """
    options = dict(kwargs)
    events = _events(options.pop("wait_for"))
    on_device = False
    for place in _queues([*args, *options.values()], options, queue):
        on_device = True
        _enqueue_wait(place, events)
    if not on_device:
        _wait(events)
    result = function(*args, **options)
    for item in result if isinstance(result, tuple) else (result,):
        if is_device_array(item) and not item.size:  # no kernel writes it
            item.events.extend(events)
    return result


def _events(wait_for: Any) -> list[cl.Event]:
    single = isinstance(wait_for, cl.Event) or not isinstance(wait_for, Iterable)
    events = [wait_for] if single else list(wait_for)
    for event in events:
        if not isinstance(event, cl.Event):
            raise InvalidProblem(
                f"wait_for must be a pyopencl.Event or several, not {shown(wait_for)}"
            )
    return events


def _queues(
    values: Iterable[Any], options: Mapping[str, Any], queue: cl.CommandQueue | None
) -> list[cl.CommandQueue]:
    """Return the queues on which a call on device arrays may enqueue; none for host arrays.

    A queue that is wrong is left to the function, which refuses it.
    """
    arrays: list[Any] = []
    for value in values:
        several = value if isinstance(value, (tuple, list)) else (value,)
        arrays += filter(is_device_array, several)
    queue = options.get("queue") or queue
    if isinstance(queue, cl.CommandQueue):
        return [queue] if arrays else []
    found: list[cl.CommandQueue] = []
    for array in arrays:
        given = array.queue
        if given is None and options.get("device") is not None:
            given = select_device(options["device"]).queue()
        if given is not None and given not in found:
            found.append(given)
    return found


def _enqueue_wait(queue: cl.CommandQueue, events: Sequence[cl.Event]) -> None:
    """Have all further commands of a queue wait for events, without waiting here.

    Behind a gate, commands run in the thread that enqueues them, so that thread waits.
    """
    session = session_of(queue)
    try:
        for event in events:
            if event.get_info(cl.event_info.CONTEXT) != queue.context:
                raise InvalidProblem(
                    "an event of wait_for belongs to another context than the queue of the call"
                )
            if event.command_execution_status < cl.command_execution_status.COMPLETE:
                raise LaunchError(f"{FAILED}: status {event.command_execution_status}")
            other: Any = event.command_queue  # a user event has none
            if other is not None and other != queue:
                other.flush()  # as OpenCL requires before one queue waits for another
        if gate_of(queue.device) is not None:
            _wait(events)
        elif events:
            with session.exclusive(queue):
                cl.enqueue_barrier(queue, wait_for=events)
    except cl.Error as error:
        raise explain(error, queue) from error


def _wait(events: Iterable[cl.Event]) -> None:
    check_process()
    try:
        for event in events:  # their contexts may differ
            queue: Any = event.command_queue
            if queue is None:
                event.wait()
            else:
                with within_gate(queue.device):
                    event.wait()
    except cl.Error as error:
        raise LaunchError(f"{FAILED}: {error}") from error
