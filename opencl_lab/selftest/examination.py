"""The self-test of a device: each family of kernels is tried in a child when a call needs it."""

from __future__ import annotations

import logging
import threading
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from opencl_lab.core.device import Device
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.verdicts import Verdict, verdict_file
from opencl_lab.selftest.child import Child
from opencl_lab.selftest.verdicts import DEVICE, MODE, Family, is_current, keep, kept

TRIAL_SECONDS = (30.0, 120.0)
"""Longest time of one trial, with the programs that are built for it, in each attempt."""
SETTINGS = {MODE: "off", "POCL_AFFINITY": "0"}
"""Environment of children. Bound threads of PoCL would all compile on the first processor."""

_log = logging.getLogger(__name__)


class Examination:
    """The self-test of one device in this process.

    Parameters
    ----------
    device : Device
    handler : str
        ``module:class`` of what children run; see `opencl_lab.ops.selftest`.
    full : bool
        Whether all trials of a family run.
    fresh : bool
        Whether to ignore verdicts that were kept; whoever wants that shows each verdict, so the
        first use is not told.
    """

    def __init__(self, device: Device, handler: str, *, full: bool = False, fresh: bool = False):
        self.device, self.full = device, full
        self._handler, self._fresh, self._told = handler, fresh, fresh
        self._found: dict[Family, Verdict] = {}
        self._locks: dict[Family, threading.Lock] = {}

    def child(self) -> Child:
        """Return a child for `verdict`, which whoever has it must end."""
        return Child(self._handler, (self.device, self.full), SETTINGS, TRIAL_SECONDS)

    def verdict(
        self, family: Family, templates: tuple[str, ...], child: Child | None = None
    ) -> Verdict:
        """Return the verdict on a family and its templates; test it if it is not known yet."""
        with self._locks.setdefault(family, threading.Lock()):
            found = self._known(family, templates)
            if found is None:
                own = child or self.child()
                try:
                    found = self._tested(family, templates, own)
                finally:
                    if child is None:
                        own.end()
            self._found[family] = found
            return found

    def _known(self, family: Family, templates: tuple[str, ...]) -> Verdict | None:
        found = self._found.get(family)
        if found is None and not self._fresh:
            found = kept(self.device).get(family.key)
            if found is not None and not is_current(found, templates, self.full):
                found = None
        return found

    def _tested(self, family: Family, templates: tuple[str, ...], child: Child) -> Verdict:
        if family != DEVICE:
            device = self.verdict(DEVICE, (), child)
            if device.word in ("broken", "unknown"):
                return device
        if not self._told:
            self._told = True
            long = "minutes" if self.full else "seconds"
            _log.warning("first use of %s: kernels are tested, for some %s", self.device, long)
        found = child.ask("test", family)
        found = replace(found, digest=kernel_digest(templates), full=self.full)
        if found.word != "unknown" and keep(self.device, {family: found}) is None:
            _tell_of_no_file(verdict_file(self.device.key).parent)
        return found


@cache
def _tell_of_no_file(folder: Path) -> None:
    """Say once that verdicts cannot be kept: devices have one folder."""
    _log.warning("%s can keep nothing, so each process tests its kernels again", folder)
