"""The worker's side of probes: running one, and timing kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.discovery import here
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.measuring.timing_sanity import agree
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import KernelRunner, seconds_of
from opencl_lab.workers.serving import find

Answers: TypeAlias = Iterator[Trying | Verdict]
"""What a probe yields: the next step, and at the end the verdict."""


class Probing:
    """Runs probes, ``module:function``, on a device of the parent, with the driver's own claims.

    Each step that a function yields is said at once, so that the parent knows its progress.
    """

    def __init__(self, device: Device, say: Callable[[Trying], None]):
        self._device, self._say = here(device), say

    def probe(self, target: str) -> Verdict:
        """Run a probe."""
        for answer in find(target)(self._device):
            if isinstance(answer, Verdict):
                return answer
            self._say(answer)
        return Verdict("unknown", "the probe ended without a verdict")


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
