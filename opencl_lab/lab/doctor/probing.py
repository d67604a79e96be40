"""The worker's side of probes: running one, and timing kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.discovery import here
from opencl_lab.lab.measuring.timing_sanity import agree
from opencl_lab.symptoms.kernels import KernelRunner, seconds_of
from opencl_lab.workers.serving import find

Answer: TypeAlias = dict[str, Any]
Answers: TypeAlias = Iterator[Answer]


class ProbeRun:
    """A probe, ``module:function``, on a device of the parent, with the driver's own claims.

    Every report that the function yields is sent at once, so that the parent knows its progress.
    """

    def __init__(self, target: str, device: Device, say: Callable[[Any], None]):
        self._probe, self._device, self._say = find(target), here(device), say

    def run(self) -> None:
        """Run the probe."""
        for step in self._probe(self._device):
            self._say(step)


class ProbeSession(KernelRunner):
    """A queue on the device under test, random data, and launches that are timed."""

    def times(self, launch: Callable[[], cl.Event]) -> tuple[float, float]:
        """Return the seconds of a launch by its event, and by the host that waits for it."""
        self.queue.finish()
        begin = time.perf_counter()
        event = launch()
        event.wait()
        host = time.perf_counter() - begin
        return seconds_of(event), host

    def clock(self, launch: Callable[[], cl.Event]) -> float:
        """Return the seconds of a launch by its event, or by the host if the two disagree."""
        event, host = self.times(launch)
        return event if agree(event, host) else host
