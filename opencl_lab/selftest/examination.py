"""Running the self-test of a device in child processes, the families that calls wait for first."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.processes import default_threads
from opencl_lab.selftest.verdicts import BASICS, MODE, Family, Verdict, is_current, keep, kept
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import Died, Worker, opening

TRIAL_SECONDS = 30.0
"""Longest time of one trial, with the programs that are built for it."""
LEAST_CHILDREN, MOST_CHILDREN = 2, 8
"""Bounds of the number of children, which is half that of the processors: they mostly build."""
LIST = Family("device", "list")
"""Stands for listing the families."""
SETTINGS = {MODE: "off", "POCL_AFFINITY": "0"}
"""Environment of children. PoCL would bind the threads that compile to the same processors."""
NICE = 10
"""Families that no call waits for should not slow the calls that already run."""

_log = logging.getLogger(__name__)


class Child:
    """A process that tests families; it is started again after one that crashes or hangs."""

    def __init__(self, device: Device, servant: str, full: bool):
        self._arguments = servant, device.spec, device.key, full
        self._worker: Worker | None = None

    def ask(self, *request: Any) -> tuple[str, Any]:
        """Return what went wrong, or "", and the answer: None where no process can be started."""
        step = "starting a second process"
        try:
            if self._worker is None:
                self._worker = Worker(opening(*self._arguments), SETTINGS, nice=NICE)
                self._worker.answer(time.monotonic() + TRIAL_SECONDS)
            self._worker.send(*request)
            while True:
                kind, value = self._worker.receive(time.monotonic() + TRIAL_SECONDS)
                if kind == "done":
                    return "", value
                step = value
        except LaunchError as error:
            _log.warning("the kernels cannot be tested: %s", error)
            return "", None
        except Failed as error:
            return f"{step}: {error}", None
        except Died as death:
            self.end()
            return f"{step}: the driver ended the process ({death.how})", None
        except TimeoutError:
            self.end()
            return f"{step}: no answer within {TRIAL_SECONDS:g} s", None

    def end(self) -> None:
        """Kill the process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()


class Examination:
    """The self-test of one device in this process.

    Where a call asks for a verdict, threads begin to test all families. They are daemons, and the
    children end with this process; what was found until then is kept.

    Parameters
    ----------
    device : Device
    servant : str
        ``module:class`` of what children run; see `opencl_lab.ops.selftest`.
    full : bool
        Whether all trials of all families run.
    fresh : bool
        Whether to ignore verdicts that were kept.
    progress : callable, optional
        ``progress(family, verdict)`` is called, by one thread at a time, with each new verdict.
    """

    def __init__(
        self,
        device: Device,
        servant: str,
        *,
        full: bool = False,
        fresh: bool = False,
        progress: Callable[[Family, Verdict], None] | None = None,
    ):
        self.device, self.full = device, full
        self._servant, self._progress = servant, progress
        self._kept = {} if fresh else kept(device)
        self._found: dict[Family, Verdict] = {}
        self._waiting: list[tuple[Family, tuple[str, ...]]] = [(BASICS, ())]
        self._running: set[Family] = set()
        self._listed = False
        self._threads = 0
        self._changed = threading.Condition()

    def verdict(self, family: Family, templates: tuple[str, ...]) -> Verdict:
        """Return the verdict on a family and its templates; wait if it is not known yet."""
        with self._changed:
            found = self._known(family, templates)
            if found is None:
                self._waiting.insert(0, (family, templates))
                self._start()
                while (found := self._found.get(family)) is None:
                    self._changed.wait()
            return found

    def complete(self) -> dict[Family, Verdict]:
        """Test all families, and return the verdicts."""
        with self._changed:
            self._start()
            while self._threads:
                self._changed.wait()
            return dict(self._found)

    def _start(self) -> None:
        if not self._threads:
            _log.info("first use of %s: its kernels are tested", self.device)
        children = max(LEAST_CHILDREN, min(default_threads() // 2, MOST_CHILDREN))
        while self._threads < children:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _known(self, family: Family, templates: tuple[str, ...]) -> Verdict | None:
        found = self._found.get(family)
        if found is None:
            found = self._kept.get(family.key)
            if found is None or not is_current(found, templates, self.full):
                return None
            self._found[family] = found
        return found

    def _work(self) -> None:
        child = Child(self.device, self._servant, self.full)
        try:
            while (one := self._next(child)) is not None:
                self._test(child, *one)
        finally:
            child.end()

    def _next(self, child: Child) -> tuple[Family, tuple[str, ...]] | None:
        """Return what to test: the device itself, what a call waits for, then other families."""
        while True:
            with self._changed:
                while (one := self._startable()) is None and self._running & {BASICS, LIST}:
                    self._changed.wait()
                if one is not None or self._listed:
                    if one is None:
                        self._threads -= 1
                        self._changed.notify_all()
                    return one
                self._listed = True
                self._running.add(LIST)
                faulty = self._found[BASICS].fault
            families = [] if faulty else child.ask("families")[1]
            with self._changed:
                self._waiting.extend(families or [])
                self._running.discard(LIST)
                self._changed.notify_all()

    def _startable(self) -> tuple[Family, tuple[str, ...]] | None:
        """Return what waits and can be tested now; all but the device itself needs its verdict."""
        device_known = self._known(BASICS, ()) is not None
        for one in list(self._waiting):
            family, templates = one
            if self._known(family, templates) or family in self._running:
                self._waiting.remove(one)
            elif device_known or family == BASICS:
                self._running.add(family)
                return one
        return None

    def _test(self, child: Child, family: Family, templates: tuple[str, ...]) -> None:
        begin = time.monotonic()
        basics = self._found.get(BASICS)
        if basics is not None and basics.fault:
            fault, answer = basics.fault, None
        else:
            fault, answer = child.ask("test", family)
        wrong, trials = answer or ("", 0)
        found = Verdict(
            digest=kernel_digest(templates),
            fault=fault or wrong,
            trials=trials,
            full=self.full,
            seconds=round(time.monotonic() - begin, 3),
        )
        if fault or answer is not None:
            keep(self.device, {family: found})
        with self._changed:
            self._running.discard(family)
            self._found[family] = found
            if self._progress is not None:
                self._progress(family, found)
            self._changed.notify_all()
