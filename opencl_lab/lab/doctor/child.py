"""The child's side of a probe: it runs in a process that the driver may take down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.workers.child import find


class ProbeRun:
    """A probe that is ready to begin.

    Parameters
    ----------
    target : str
        ``module:function`` of the probe.
    spec : str
        The device.
    say : callable
        Called with every step that the function yields at once, so that the parent knows how far
        the probe came.
    """

    def __init__(self, target: str, spec: str, say: Callable[[Any], None]):
        self._probe, self._device, self._say = find(target), select_device(spec), say

    def run(self) -> None:
        """Run the probe."""
        for step in self._probe(self._device):
            self._say(step)
