"""The implementations that a comparison times in turns, behind one interface."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError, InvalidConfig, OclabError, ReferenceUnavailable
from opencl_lab.core.wording import counted, duration
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.row import Measurement, Side, Status
from opencl_lab.lab.measuring.back_to_back import calls_for
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.poison import poisoned
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import (
    Arrays,
    HostReference,
    OutputsLike,
)
from opencl_lab.lab.reference.execute import PreparedReference, prepare
from opencl_lab.lab.reference.peers import PeerReference, Reference
from opencl_lab.ops.solver import Problem

LOW_COST = 1 << 30  # of a reference: it takes a second or two at most
ESTIMATE_RUNS = 3
UNNAMED_TOTAL_SECONDS = 5.0  # for all runs of a reference that the user has not named
TOO_SLOW = "a run would take about"
"""Begins the reason of a reference that is left out as too slow."""
ONE_RUN = "one run, as there was no time for more"
SAMPLE_MS = 10.0  # duration of a sample
LONG_MS = 200.0  # a call that takes longer is not warmed up
WARMED_MS = 50.0  # a call that takes longer is not warmed up before each sample
STATUSES: dict[type[OclabError], Status] = {
    ReferenceUnavailable: "unavailable",
    BuildError: "compile",
    InvalidConfig: "constraints",
}
"""The status for each error; others are of the runtime."""


@dataclass(frozen=True)
class Workload:
    """One problem with its inputs and the right outputs."""

    operation: Operation[Any]
    problem: Problem
    inputs: Arrays
    expected: Arrays

    def poisoned_outputs(self) -> Arrays:
        """Return output arrays filled with `POISON`."""
        room = self.operation.room(self.problem, self.expected)
        return {name: poisoned(shape, dtype) for name, (shape, dtype) in room.items()}


@dataclass
class Implementation(ABC):
    """Something that solves the workload repeatedly; if it fails, the others go on without it."""

    workload: Workload
    name: str
    kind: str
    algorithm: str
    status: Status = "correct"
    reason: str = ""
    totals: list[float] = field(default_factory=list)
    difference: Difference | None = None
    error: OclabError | None = None
    data: Side = "host"
    calls: int = 1
    timed: bool = True
    """Whether to time it, or only to check its result."""
    call_ms: float = math.inf
    """Milliseconds of a call, as measured by `warm_up`."""
    first_ms: float = 0.0
    """Milliseconds of the first run, without builds."""
    limit_ms: float = math.inf
    """If the first run takes longer, it is the only one."""

    @abstractmethod
    def start(self) -> None:
        """Build, load or start a process, as needed before the first run."""

    def first(self) -> None:
        """Solve the workload for the first time, and set `first_ms`."""
        self.first_ms = self.sample(1)

    @abstractmethod
    def sample(self, calls: int) -> float:
        """Solve the workload `calls` times back to back; return the total milliseconds."""

    @abstractmethod
    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""

    @abstractmethod
    def measurement(self) -> Measurement:
        """Return what was measured."""

    def close(self) -> None:  # noqa: B027  (most have nothing to free)
        """Free what `start` took."""

    def attempt(self, action: Any) -> Any:
        """Call `action`; an error becomes the status of this implementation."""
        if self.status != "correct":
            return None
        try:
            return action()
        except OclabError as error:
            self.error = error
            self.reason = error.sentence.removeprefix(f"{self.name}: ")
            named = (status for kind, status in STATUSES.items() if isinstance(error, kind))
            self.status = next(named, "runtime")
            return None

    def check(self) -> None:
        """Run once with poisoned outputs, compare the result with the expected one, and warm up.

        If there is no time for another run, this one is the sample.
        """
        self.attempt(self.first)
        self.verify()
        if self.timed and self.first_ms > self.limit_ms and self.status == "correct":
            self.totals.append(self.first_ms)
        elif self.timed:
            self.attempt(self.warm_up)

    def warm_up(self) -> None:
        """Warm up, and choose the number of calls in a sample.

        The faster of two calls decides, so that one disturbed call does not make samples short.
        """
        self.call_ms = self.sample(1)
        if self.call_ms < LONG_MS:
            self.call_ms = min(self.call_ms, self.sample(1))
        self.calls = calls_for(SAMPLE_MS, self.call_ms)

    def verify(self) -> None:
        """Compare the outputs of the last run with the expected ones."""
        if self.status != "correct":
            return
        workload = self.workload
        self.difference = self.attempt(
            lambda: workload.operation.compare(
                workload.problem, workload.inputs, workload.expected, self.outputs()
            )
        )
        if self.difference is not None and not self.difference.ok:
            self.status = "correctness"
            self.reason = f"wrong result: {self.difference}"

    def measure(self) -> None:
        """Take a sample, unless there is time for the first run only."""
        if self.first_ms > self.limit_ms:
            return
        total = self.attempt(self._timed_sample)
        if total is not None:
            self.totals.append(total)

    def _timed_sample(self) -> float:
        """Return the milliseconds per call of one sample, after a call that warms up.

        A sample of one call needs the warm-up, too: where the threads of a device have slept
        since its last turn, sorting 300,000 keys takes twice as long.
        """
        if self.call_ms <= WARMED_MS:
            self.sample(1)
        return self.sample(self.calls) / self.calls

    def _measurement(self, **more: Any) -> Measurement:
        """Return a row of the fields that all kinds share, and of `more`."""
        checked = "" if self.difference is None else self.difference.checked
        once = ONE_RUN if self.totals and self.first_ms > self.limit_ms else ""
        more["note"] = ", ".join(filter(None, (more.get("note", ""), once, checked)))
        return Measurement(
            self.name,
            self.kind,
            self.algorithm,
            self.status,
            self.reason,
            data=self.data,
            calls=self.calls,
            total_ms=Times.of(self.totals) if self.totals else None,
            work=self.workload.problem.work,
            difference=self.difference,
            **more,
        )


class ReferenceRun(Implementation):
    """A reference implementation of the operation.

    One that the user has named (`by_name`) runs however long it takes. The runs of others take
    no longer than `UNNAMED_TOTAL_SECONDS` together: they are fewer than asked for, or none
    where the checked run and a timed one would take longer.
    """

    def __init__(
        self,
        workload: Workload,
        reference: Reference,
        threads: int,
        device: Device | None = None,
        by_name: bool = True,
        name: str = "",
    ):
        super().__init__(workload, name or reference.name, reference.kind, reference.name)
        self.reference = reference
        self.threads = threads if reference.threaded else 1
        self.device = device
        self.by_name = by_name
        self.data = (
            "device" if isinstance(reference, PeerReference) and not reference.copies else "host"
        )
        self.limit_ms = math.inf if by_name else UNNAMED_TOTAL_SECONDS * 1e3
        self._spent = 0.0
        self._prepared: PreparedReference | None = None

    def start(self) -> None:
        """Compile, or start the worker."""
        seconds = 0.0 if self.by_name else self._estimate()
        if 2 * seconds > UNNAMED_TOTAL_SECONDS:
            name = self.reference.name
            raise ReferenceUnavailable(f"{TOO_SLOW} {duration(seconds)}; --against {name} runs it")
        workload = self.workload
        self._prepared = self._prepare(workload.problem, workload.inputs, workload.expected)

    def _prepare(self, problem: Problem, inputs: Arrays, expected: Arrays) -> PreparedReference:
        """Return the reference, ready to run, with arrays for its outputs."""
        like: OutputsLike = {name: (a.shape, a.dtype) for name, a in expected.items()}
        if not isinstance(self.reference, PeerReference):
            like = self.workload.operation.room(problem, expected)
        return prepare(self.reference, problem, inputs, like, self.threads, self.device)

    def _estimate(self) -> float:
        """Return the estimated seconds of a run, from runs on a small problem; 0 at low cost."""
        operation, problem = self.workload.operation, self.workload.problem
        cost = self.reference.cost
        if cost is None or cost(problem) <= LOW_COST:
            return 0.0
        small = operation.sample(problem)
        inputs = operation.generate(small, 0)
        with closing(self._prepare(small, inputs, operation.expected(small, inputs))) as prepared:
            seconds = min(prepared.run() for _ in range(ESTIMATE_RUNS))
        return seconds * cost(problem) / cost(small)

    @property
    def prepared(self) -> PreparedReference:
        """The reference, ready to run."""
        if self._prepared is None:
            raise ReferenceUnavailable(f"{self.name} was not started")
        return self._prepared

    def warm_up(self) -> None:
        """Warm up, unless that takes long."""
        if self.first_ms < LONG_MS:
            super().warm_up()

    def sample(self, calls: int) -> float:
        """Solve the workload `calls` times back to back; return the total milliseconds."""
        seconds = self.prepared.run(calls)
        self._spent += seconds
        return seconds * 1e3

    def measure(self) -> None:
        """Take a sample, unless there is one and the time limit leaves no room for another."""
        if (
            self.by_name
            or not self.totals
            or self._spent + self.totals[-1] / 1e3 <= UNNAMED_TOTAL_SECONDS
        ):
            super().measure()

    def verify(self) -> None:
        """Compare the outputs, and say so if the reference is known to differ."""
        super().verify()
        if self.status == "correctness" and isinstance(self.reference, HostReference):
            known = self.reference.differs(self.workload.problem, self.workload.inputs)
            if known:
                self.reason = f"known to differ: {known}"

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        return self.prepared.outputs()

    def measurement(self) -> Measurement:
        """Return what was measured."""
        own = getattr(self.reference, "note", None)
        processors, note = default_threads(), ""
        if self.totals and own:
            note = own(self.workload.problem)
        elif self.totals and self.threads > processors:  # they were shared, which costs more
            workers = "ranks" if self.kind == "mpi" else "threads"
            note = f"{self.threads} {workers} on {counted(processors, 'processor')}"
        return self._measurement(threads=self.threads, workers=self.threads, note=note)

    def close(self) -> None:
        """Stop the worker, if there is one."""
        if self._prepared is not None:
            self._prepared.close()
