"""The current call of a public function: the queue that it uses, and what it does there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.queues import check_process
from opencl_lab.drivers.discovery import DeviceSpec, device_of, select_device
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import Execution, execute
from opencl_lab.runtime.recording import Recording
from opencl_lab.runtime.session import Session, new_array, session_of
from opencl_lab.selftest import trust


def queue_for(
    array: Any, queue: cl.CommandQueue | None, device: DeviceSpec = None
) -> cl.CommandQueue | None:
    """Return the queue that the caller asked for, else that of a device array.

    `device` means the library's queue on that device, and for an array there its own queue. A
    `queue` of another type, `queue` and `device` together, and a device array without a queue, on
    another device or in another context are refused. None for a host array without either: the
    library's queue on `select_device()`.
    """
    check_process()
    on_device = isinstance(array, cl.array.Array)
    if queue is not None and not isinstance(queue, cl.CommandQueue):
        raise InvalidProblem(f"queue must be a pyopencl.CommandQueue, not {queue!r}")
    if device is not None:
        if queue is not None:
            raise InvalidProblem("give queue= or device=, not both")
        chosen = select_device(device)
        if not on_device or array.queue is None:
            queue = chosen.queue()
        elif array.queue.device != chosen.handle:
            raise InvalidProblem(
                f"the array is on {device_of(array.queue.device)}, and device= says {chosen}; "
                "opencl_lab.to_device copies it there"
            )
    if not on_device:
        return queue
    if array.queue is None and queue is None:
        raise InvalidProblem("the device array has no queue; use array.with_queue(queue)")
    if queue is not None and array.context != queue.context:
        given = "queue=" if device is None else "device="
        raise InvalidProblem(f"the device array and {given} belong to different contexts")
    return queue or array.queue


class Call:
    """A call that is not replayed: the first one of its key, or one that cannot be recorded.

    A public function gets it from its decorator, as the first argument, and passes it to all
    functions that work on its arrays. Code that runs a plan by itself makes its own.

    Parameters
    ----------
    queue : pyopencl.CommandQueue, optional
        Where the call works; by default the library's queue on `select_device()`.
    recording : Recording, optional
        Records what the call does.
    """

    def __init__(self, queue: cl.CommandQueue | None = None, recording: Recording | None = None):
        self._queue = queue
        self._session: Session | None = None
        self._recording = recording
        self._movable = False

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue on which the call works."""
        if self._queue is None:
            self._queue = select_device().queue()
        return self._queue

    @property
    def session(self) -> Session:
        """The session of the queue."""
        if self._session is None:
            self._session = session_of(self.queue)
            trust.admit(self._session.device)
        return self._session

    @property
    def device(self) -> Device:
        """The device of the queue."""
        return self.session.device

    def use(
        self, array: Any, queue: cl.CommandQueue | None = None, device: DeviceSpec = None
    ) -> None:
        """Work on the queue asked for, else on that of a device array; see `queue_for`."""
        if queue is not None or isinstance(array, cl.array.Array):
            self._movable = False
        elif device is not None or self._queue is None:
            self._movable = True
        self._queue = queue_for(array, self._queue if queue is None else queue, device)
        self._session = None

    def move(self, side: Callable[[Device], Device]) -> None:
        """Work on the side of the device that a function returns, from now on.

        Only for host arrays, if the caller gave no queue and nothing has run yet.
        """
        if self._movable:
            self._movable = False
            chosen = side(self.device)
            if chosen is not self.device:
                self._queue, self._session = chosen.queue(), None

    def check(self, array: Any) -> None:
        """Refuse an array that cannot be used on the queue of this call."""
        queue_for(array, self._queue)

    def execute(
        self,
        executable: Executable,
        inputs: Mapping[str, Any],
        out: Mapping[str, Any] | None = None,
    ) -> Execution:
        """Run an executable; see `execute`."""
        given = out or {}
        self._movable = False
        execution = execute(executable, inputs, self.queue, given)
        if self._recording is not None:
            self._recording.add_run(executable, inputs, execution.outputs, given, self.queue)
        return execution

    def new_array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], allocator: Any
    ) -> cl.array.Array:
        """Return an uninitialized array on the device."""
        array = new_array(self.queue, shape, dtype, allocator)
        if self._recording is not None and array.size:
            self._recording.add_fresh(array)
        return array

    def constants(self, arrays: Iterable[Any]) -> None:
        """Record arrays made of values in the key, which further calls with it share."""
        if self._recording is not None:
            for array in arrays:
                self._recording.add_constant(array)
