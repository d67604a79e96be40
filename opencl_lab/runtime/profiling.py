"""Profiles: a list of the launches of all calls, with the times that the device tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pyopencl as cl

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.queues import profiles, within_gate

_COPIES = {
    cl.command_type.WRITE_BUFFER: "copy to the device",
    cl.command_type.READ_BUFFER: "copy to the host",
}
UNTIMED = (
    "no times where a queue has no profiling: pass queue= or arrays of "
    "Device.queue(profiling=True), or of a queue with PROFILING_ENABLE"
)


@dataclass(frozen=True)
class ProfiledLaunch:
    """A kernel or a copy that a call enqueued.

    `queued`, `submitted`, `start` and `end` are nanoseconds of the device's own clock, as in
    `pyopencl.Event.profile`; they wait for the launch. Where the queue has no profiling, they are
    a `LaunchError`.

    Attributes
    ----------
    name : str
        Of the kernel, or ``"copy to the device"`` or ``"copy to the host"``.
    queue : pyopencl.CommandQueue
    event : pyopencl.Event or None
        None if the queue has no profiling.
    """

    name: str
    queue: cl.CommandQueue
    event: cl.Event | None

    @property
    def queued(self) -> int:
        """When the host enqueued it."""
        return self._time("queued")

    @property
    def submitted(self) -> int:
        """When the driver passed it to the device."""
        return self._time("submit")

    @property
    def start(self) -> int:
        """When the device began it."""
        return self._time("start")

    @property
    def end(self) -> int:
        """When the device ended it."""
        return self._time("end")

    @property
    def ms(self) -> float:
        """How long it ran, in milliseconds."""
        return (self.end - self.start) * 1e-6

    def _time(self, which: str) -> int:
        if self.event is None:
            raise LaunchError(UNTIMED)
        try:
            with within_gate(self.queue.device):
                self.event.wait()
            return int(getattr(self.event.profile, which))
        except cl.Error as error:
            raise LaunchError(f"no times of {self.name}: {error}") from error


class Profile:
    """The launches of the calls that were made in a ``with``; see `profile`.

    Attributes
    ----------
    launches : list of ProfiledLaunch
        In the order of calls.
    """

    def __init__(self) -> None:
        self.launches: list[ProfiledLaunch] = []

    def __enter__(self) -> Profile:
        profiles.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        profiles.remove(self)

    def __len__(self) -> int:
        return len(self.launches)

    def __iter__(self) -> Iterator[ProfiledLaunch]:
        return iter(self.launches)

    @property
    def ms(self) -> float:
        """The time of all launches together, in milliseconds."""
        return sum(launch.ms for launch in self.launches)

    def __str__(self) -> str:
        """Return a table; `waited` is the time from `queued` to `start`."""
        lines = [f"{'ms':>10} {'waited':>10}  launch"]
        untimed = False
        for launch in self.launches:
            if launch.event is None:
                untimed = True
                lines.append(f"{'':>21}  {launch.name}")
            else:
                waited = (launch.start - launch.queued) * 1e-6
                lines.append(f"{launch.ms:10.4f} {waited:10.4f}  {launch.name}")
        return "\n".join([*lines, UNTIMED] if untimed else lines)


def profile() -> Profile:
    """Return a context manager that lists the launches of all calls in it, with their times.

    Calls on host arrays, and arrays made on `Device.queue` meanwhile, use the library's queues with
    profiling. A device array stays on its own queue: if that has no profiling, its launches are
    listed without times. Launches of other threads are listed as well, those of pyopencl are not.

    Returns
    -------
    Profile

    Examples
    --------
    >>> import numpy as np, opencl_lab as ol
    >>> with ol.profile() as profile:
    ...     result = ol.sort(np.arange(1000)[::-1].copy())
    >>> [launch.ms > 0 for launch in profile]
    [True]
    """
    return Profile()


def note(
    queue: cl.CommandQueue,
    kernels: Sequence[cl.Kernel],
    events: Sequence[cl.Event],
    copies: Sequence[cl.Event],
) -> None:
    """Add the launches of a run, whose events are the last ones, to all active profiles."""
    timed = queue.properties & cl.command_queue_properties.PROFILING_ENABLE
    known: Sequence[Any] = events[-len(kernels) :] if timed else [None] * len(kernels)
    made = [
        ProfiledLaunch(kernel.function_name, queue, event)
        for kernel, event in zip(kernels, known, strict=True)
    ]
    there = [
        ProfiledLaunch(_COPIES.get(copy.command_type, "copy"), queue, copy if timed else None)
        for copy in copies
    ]
    sent = [copy for copy in there if copy.name == _COPIES[cl.command_type.WRITE_BUFFER]]
    back = [copy for copy in there if copy not in sent]
    for active in tuple(profiles):
        active.launches += [*sent, *made, *back]
