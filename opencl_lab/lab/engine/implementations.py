"""The implementations that a comparison runs in turn, behind one small interface."""

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
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.poison import poisoned
from opencl_lab.lab.measuring.rows import calls_for
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Arrays, DeviceReference, OutputsLike, Reference
from opencl_lab.lab.reference.execute import Prepared, prepare
from opencl_lab.lab.reference.peers import Resident
from opencl_lab.ops.solver import Problem

FEW_STEPS = 1 << 30  # of a reference, which take a second or two at most
SAMPLE_RUNS = 3
PATIENCE = 5.0  # seconds that all runs of a reference may take that nobody asked for by name
TOO_SLOW = "a run would take about"
"""Begins the reason of a row that took too long to be run."""
ONE_RUN = "one run, as there was no time for more"
ROW_MS = 10.0  # that a row of calls takes
LONG_MS = 200.0  # a call that takes longer is not made once more before it is timed
WARMED_MS = 50.0  # nor is one that takes longer made once more before each row
STATUSES: dict[type[OclabError], Status] = {
    ReferenceUnavailable: "unavailable",
    BuildError: "compile",
    InvalidConfig: "constraints",
}
"""By error; others are of the runtime."""


@dataclass(frozen=True)
class Workload:
    """One problem with its inputs and the right outputs."""

    operation: Operation[Any]
    problem: Problem
    inputs: Arrays
    expected: Arrays

    def poisoned_outputs(self) -> Arrays:
        """Return output arrays full of a byte that no right result is made of."""
        room = self.operation.room(self.problem, self.expected)
        return {name: poisoned(shape, dtype) for name, (shape, dtype) in room.items()}


@dataclass
class Implementation(ABC):
    """Something that solves the workload again and again; a failure ends its part, not the run."""

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
    """Whether its times matter; else a checked result is all that is wanted."""
    call_ms: float = math.inf
    """Milliseconds of a call, as `warm_up` measured it."""
    first_ms: float = 0.0
    """Milliseconds of the first run, without what it builds."""
    limit_ms: float = math.inf
    """The first run is the only one if it took longer."""

    @abstractmethod
    def start(self) -> None:
        """Get ready: build, load, start a process. May run beside the start of others."""

    @abstractmethod
    def first(self) -> None:
        """Solve the workload for the first time, and set `first_ms`."""

    @abstractmethod
    def row(self, calls: int) -> float:
        """Solve the workload so many times in a row; return the total time in milliseconds."""

    @abstractmethod
    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""

    @abstractmethod
    def measurement(self) -> Measurement:
        """Return what was measured."""

    def close(self) -> None:  # noqa: B027  (most have nothing to free)
        """Free what `start` took."""

    def attempt(self, step: Any) -> Any:
        """Run one step; an error becomes the status of this implementation."""
        if self.status != "correct":
            return None
        try:
            return step()
        except OclabError as error:
            self.error = error
            self.reason = error.sentence.removeprefix(f"{self.name}: ")
            named = (status for kind, status in STATUSES.items() if isinstance(error, kind))
            self.status = next(named, "runtime")
            return None

    def check(self) -> None:
        """Run once with poisoned outputs, compare the result with the right one, and warm up.

        Where there is time for this run alone, it is the timed one.
        """
        self.attempt(self.first)
        self.verify()
        if self.timed and self.first_ms > self.limit_ms and self.status == "correct":
            self.totals.append(self.first_ms)
        elif self.timed:
            self.attempt(self.warm_up)

    def warm_up(self) -> None:
        """Warm up, and choose how many calls make a row.

        The faster of two calls decides: a busy moment would leave a row of few calls.
        """
        self.call_ms = self.row(1)
        if self.call_ms < LONG_MS:
            self.call_ms = min(self.call_ms, self.row(1))
        self.calls = calls_for(ROW_MS, self.call_ms)

    def verify(self) -> None:
        """Compare the outputs of the last run with the right ones."""
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
        """Make a row of calls and keep the time of one, if there is time for more than a run."""
        if self.first_ms > self.limit_ms:
            return
        total = self.attempt(self._timed_row)
        if total is not None:
            self.totals.append(total)

    def _timed_row(self) -> float:
        """Return the milliseconds of a call in a row, after one that warms up.

        A row of one call needs that as well: threads of a device that have slept since its last
        turn make 300,000 keys take twice as long.
        """
        if self.call_ms <= WARMED_MS:
            self.row(1)
        return self.row(self.calls) / self.calls

    def _measurement(self, **more: Any) -> Measurement:
        """Return the fields that every kind shares, with `more`."""
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
    """A reference implementation of the operation; a patient one runs however long it takes.

    The runs of impatient ones take no longer than `PATIENCE` together: they are fewer than asked
    for, or none where that is not enough for the checked run and a timed one.
    """

    def __init__(
        self,
        workload: Workload,
        reference: Reference | Resident,
        threads: int,
        device: Device | None = None,
        patient: bool = True,
        name: str = "",
    ):
        super().__init__(workload, name or reference.name, reference.kind, reference.name)
        self.reference = reference
        self.threads = threads if reference.threaded else 1
        self.device = device
        self.patient = patient
        self.data = "device" if isinstance(reference, Resident) else "host"
        self.limit_ms = math.inf if patient else PATIENCE * 1e3
        self._spent = 0.0
        self._prepared: Prepared | None = None

    def start(self) -> None:
        """Compile, or start the child process."""
        seconds = 0.0 if self.patient else self._estimate()
        if 2 * seconds > PATIENCE:
            name = self.reference.name
            raise ReferenceUnavailable(f"{TOO_SLOW} {duration(seconds)}; --against {name} runs it")
        workload = self.workload
        self._prepared = self._prepare(workload.problem, workload.inputs, workload.expected)

    def _prepare(self, problem: Problem, inputs: Arrays, expected: Arrays) -> Prepared:
        """Return the reference with arrays for what C functions write, or libraries return."""
        like: OutputsLike = {name: (a.shape, a.dtype) for name, a in expected.items()}
        if not isinstance(self.reference, (Resident, DeviceReference)):
            like = self.workload.operation.room(problem, expected)
        return prepare(self.reference, problem, inputs, like, self.threads, self.device)

    def _estimate(self) -> float:
        """Return how many seconds a run will take, from runs on a small problem.

        0 where the reference needs few steps, so that it is not worth trying.
        """
        operation, problem = self.workload.operation, self.workload.problem
        steps = self.reference.steps
        if steps is None or steps(problem) <= FEW_STEPS:
            return 0.0
        small = operation.sample(problem)
        inputs = operation.generate(small, 0)
        with closing(self._prepare(small, inputs, operation.expected(small, inputs))) as prepared:
            seconds = min(prepared.run() for _ in range(SAMPLE_RUNS))
        return seconds * steps(problem) / steps(small)

    @property
    def prepared(self) -> Prepared:
        """The reference, ready to run."""
        if self._prepared is None:
            raise ReferenceUnavailable(f"{self.name} was not started")
        return self._prepared

    def first(self) -> None:
        """Solve once, into poisoned outputs where the reference does not make its own."""
        self.first_ms = self.row(1)

    def warm_up(self) -> None:
        """Warm up, unless that takes long: the first run was a run as any other."""
        if self.first_ms < LONG_MS:
            super().warm_up()

    def row(self, calls: int) -> float:
        """Solve so many times in a row."""
        seconds = self.prepared.run(calls)
        self._spent += seconds
        return seconds * 1e3

    def measure(self) -> None:
        """Make one more row and keep the time, unless there is one and patience ends."""
        if self.patient or not self.totals or self._spent + self.totals[-1] / 1e3 <= PATIENCE:
            super().measure()

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        return self.prepared.outputs()

    def measurement(self) -> Measurement:
        """Return the row."""
        own = getattr(self.reference, "note", None)
        processors, note = default_threads(), ""
        if self.totals and own:
            note = own(self.workload.problem)
        elif self.totals and self.threads > processors:  # they were shared, which costs more
            workers = "ranks" if self.kind == "mpi" else "threads"
            note = f"{self.threads} {workers} on {counted(processors, 'processor')}"
        return self._measurement(threads=self.threads, workers=self.threads, note=note)

    def close(self) -> None:
        """Stop a child process."""
        if self._prepared is not None:
            self._prepared.close()
