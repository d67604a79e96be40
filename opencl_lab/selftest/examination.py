"""Running the self-test of a device in child processes, the families that calls wait for first."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError, OclabError
from opencl_lab.core.records import as_json, typed
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.processes import default_threads
from opencl_lab.selftest.verdicts import (
    DEVICE,
    LIST,
    MODE,
    Family,
    Listed,
    Verdict,
    is_current,
    keep,
    kept,
    verdict_file,
)
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import ENDED_BY_OTHERS, Died, Worker, opening

TRIAL_SECONDS = (30.0, 120.0)
"""Longest time of one trial, with the programs that are built for it, in each attempt.

A driver must fail in all attempts, as a machine may just be busy.
"""
LEAST_CHILDREN, MOST_CHILDREN = 2, 4
"""Bounds of the number of children, which is half that of the processors: they mostly build."""
SETTINGS = {MODE: "off", "POCL_AFFINITY": "0"}
"""Environment of children. Bound threads of PoCL would all compile on the first processor."""
POLL_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What a child says: an answer, or what is wrong with the device, or why nobody knows."""

    value: Any = None
    fault: str = ""
    doubt: str = ""
    lasting: bool = False  # whether the next process would see the same


class TrialError(OclabError):
    """A trial raised an error."""


class Child:
    """A process that tests families; it is started again after one that crashes or hangs."""

    def __init__(self, device: Device, handler: str, full: bool):
        self._arguments = handler, device, full
        self._worker: Worker | None = None

    def ask(self, *request: Any) -> Answer:
        """Return the answer to a request."""
        fault = ""
        for seconds in TRIAL_SECONDS:
            step = ""
            try:
                if self._worker is None:
                    self._worker = Worker(opening(*self._arguments), SETTINGS)
                    self._worker.answer(time.monotonic() + seconds)
                step = "the first kernel"
                self._worker.send(*request)
                while True:
                    kind, value = self._worker.receive(time.monotonic() + seconds)
                    if kind == "done":
                        return Answer(value, lasting=True)
                    step = str(value)
            except Failed as error:
                self.end()
                if not isinstance(error.error, TrialError):
                    return Answer(doubt=f"{step or 'no child process'}: {error}")
                fault = error.error.sentence
            except Died as death:
                self.end()
                if not step or death.signal_name in ENDED_BY_OTHERS:
                    return Answer(doubt=f"a child process ended: {death.how}")
                fault = f"{step}: the driver ended the process ({death.how})"
            except TimeoutError:
                self.end()
                fault = f"{step}: no answer within {seconds:g} s"
                if not step:
                    return Answer(doubt="a child process does not start")
            except (LaunchError, OSError, TypeError, RuntimeError) as error:
                self.end()  # no executable, no memory, or processes are not allowed
                return Answer(doubt=f"no child process: {error}")
        return Answer(fault=fault, lasting=True)

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
    handler : str
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
        handler: str,
        *,
        full: bool = False,
        fresh: bool = False,
        progress: Callable[[Family, Verdict], None] | None = None,
    ):
        self.device, self.full = device, full
        self._handler, self._progress, self._fresh = handler, progress, fresh
        self._kept = {} if fresh else kept(device)
        self._found: dict[Family, Verdict] = {}
        self._waiting: list[Listed] = [(DEVICE, ()), (LIST, ())]
        self._running: set[Family] = set()
        self._threads = 0
        self._changed = threading.Condition()
        self._told = fresh  # `oclab selftest` shows each verdict itself, so nothing is told here

    def verdict(self, family: Family, templates: tuple[str, ...]) -> Verdict:
        """Return the verdict on a family and its templates; wait for it if it is not known yet."""
        with self._changed:
            found = self._known(family, templates)
            if found is None:
                self._waiting.insert(0, (family, templates))
                while (found := self._found.get(family)) is None:
                    # Threads at work may be busy with others, and those that end count until then.
                    if family not in self._running and not self._start():
                        return Verdict(digest="", doubt="no thread can be started")
                    self._changed.wait(POLL_SECONDS)
            return found

    def complete(self) -> dict[Family, Verdict]:
        """Test all families, and return the verdicts."""
        with self._changed:
            self._start()
            while self._threads:
                self._changed.wait(POLL_SECONDS)
            return dict(self._found)

    def _start(self) -> bool:
        """Start the threads that are not there; return whether there are some."""
        children = max(LEAST_CHILDREN, min(default_threads() // 2, MOST_CHILDREN))
        try:
            while self._threads < children:
                threading.Thread(target=self._work, daemon=True).start()
                self._threads += 1
        except RuntimeError:  # there are too many, or the interpreter is about to end
            pass
        return self._threads > 0

    def _known(self, family: Family, templates: tuple[str, ...]) -> Verdict | None:
        found = self._found.get(family)
        if found is None:
            found = self._kept.get(family.key)
            if found is None or not is_current(found, templates, self.full):
                return None
            self._take(family, found)
        return found

    def _take(self, family: Family, found: Verdict) -> None:
        self._found[family] = found
        self._waiting.extend(found.families)

    def _work(self) -> None:
        child = Child(self.device, self._handler, self.full)
        try:
            while (one := self._next()) is not None:
                self._test(child, *one)
        finally:
            child.end()
            with self._changed:
                self._threads -= 1
                self._changed.notify_all()

    def _next(self) -> Listed | None:
        """Return what to test now: the device itself, what a call waits for, then the others."""
        with self._changed:
            while True:
                device_known = self._known(DEVICE, ()) is not None
                self._known(LIST, ())  # then those that it lists are waiting
                for one in list(self._waiting):
                    family, templates = one
                    if self._known(family, templates) or family in self._running:
                        self._waiting.remove(one)
                    elif device_known or family in (DEVICE, LIST):
                        self._running.add(family)
                        return one
                if not self._running & {DEVICE, LIST}:  # which may lead to more
                    return None
                self._changed.wait(POLL_SECONDS)

    def _test(self, child: Child, family: Family, templates: tuple[str, ...]) -> None:
        """Store the verdict on a family, whatever happens, since calls wait for it."""
        if not self._fresh:  # another process may have tested it meanwhile
            with self._changed:
                self._kept = kept(self.device)
                if self._known(family, templates):
                    self._end(family)
                    return
        begin, lasting = time.monotonic(), False
        found = Verdict(digest="")
        try:
            answer = self._answer(child, family)
            found = typed(Verdict, as_json(self._verdict(answer, family, templates)))
            lasting = answer.lasting and not answer.doubt
        except Exception as error:  # a child with damaged memory may answer anything
            found = Verdict(digest="", doubt=f"{type(error).__name__}: {error}")
        found = replace(found, seconds=round(time.monotonic() - begin, 3))
        if lasting and keep(self.device, {family: found}) is None:
            _tell_of_no_file(verdict_file(self.device).parent)
        with self._changed:
            self._take(family, found)
            self._end(family)
            if self._progress is not None and family != LIST:
                self._progress(family, found)

    def _end(self, family: Family) -> None:
        self._running.discard(family)
        self._changed.notify_all()

    def _answer(self, child: Child, family: Family) -> Answer:
        device = self._found.get(DEVICE)
        if device is not None and (device.fault or device.doubt):
            return Answer(None, device.fault, device.doubt)
        if family == LIST:  # what it cannot say is no fault of the device
            answer = child.ask("families")
            return answer._replace(fault="", doubt=answer.doubt or answer.fault)
        self._tell()
        return child.ask("test", family)

    def _verdict(self, answer: Answer, family: Family, templates: tuple[str, ...]) -> Verdict:
        """Return the verdict that follows from an answer; any error if that is no answer."""
        found = Verdict(
            digest=kernel_digest(templates),
            fault=answer.fault,
            doubt=answer.doubt,
            full=self.full,
        )
        if answer.value is None:
            return found
        if family == LIST:
            listed = tuple((Family(*one), tuple(names)) for one, names in answer.value)
            return replace(found, families=listed)
        fault, trials = answer.value
        return replace(found, fault=fault, trials=trials)

    def _tell(self) -> None:
        """Say once that the device is tested."""
        with self._changed:
            told, self._told = self._told, True
        if not told:
            long = "minutes" if self.full else "seconds"
            _log.warning("first use of %s: its kernels are tested, for some %s", self.device, long)


_keep_nothing: dict[Path, object] = {}


def _tell_of_no_file(folder: Path) -> None:
    """Say once that verdicts cannot be kept: devices have one folder."""
    first = object()
    if _keep_nothing.setdefault(folder, first) is first:
        _log.warning("%s can keep nothing, so each process tests its kernels again", folder)
