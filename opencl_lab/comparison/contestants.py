"""The implementations that a comparison runs in turn, behind one small interface."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opencl_lab.comparison.measure import Measurement, Status, Times
from opencl_lab.device import Device
from opencl_lab.doctor.peaks import above_peak, fraction_of_peak, refusal, stored_peaks
from opencl_lab.errors import (
    BuildError,
    InvalidConfig,
    LaunchError,
    OclabError,
    ReferenceUnavailable,
)
from opencl_lab.operation import Difference, Operation, Problem
from opencl_lab.reference.descriptor import Arrays, Reference
from opencl_lab.reference.execute import Prepared, poisoned, prepare
from opencl_lab.runtime.execute import Execution
from opencl_lab.runtime.session import default_queue
from opencl_lab.words import duration

__all__ = ["Contestant", "OpenCL", "ReferenceRun", "Task"]

FEW_STEPS = 1 << 30  # of a reference, which take a second or two at most
SAMPLE_RUNS = 3
PATIENCE = 5.0  # seconds that all runs of a reference may take that nobody asked for by name
CLOCK_SLACK = 1.1  # event times may exceed the host's clock by this much before they are doubted


@dataclass(frozen=True)
class Task:
    """One problem with its inputs and the right outputs."""

    operation: Operation[Any]
    problem: Problem
    inputs: Arrays
    expected: Arrays

    def poisoned_outputs(self) -> Arrays:
        """Return output arrays full of a byte that no right result is made of."""
        return {name: poisoned(array.shape, array.dtype) for name, array in self.expected.items()}


@dataclass
class Contestant(ABC):
    """Something that solves the task again and again; a failure ends its part, not the run."""

    task: Task
    name: str
    kind: str
    algorithm: str
    status: Status = "correct"
    reason: str = ""
    totals: list[float] = field(default_factory=list)
    difference: Difference | None = None
    error: OclabError | None = None

    @abstractmethod
    def start(self) -> None:
        """Get ready: build, load, start a process. May run beside the start of others."""

    @abstractmethod
    def run(self) -> float:
        """Solve the task once; return the total time in milliseconds."""

    @abstractmethod
    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""

    @abstractmethod
    def measurement(self) -> Measurement:
        """Return what was measured."""

    def close(self) -> None:  # noqa: B027  (most have nothing to free)
        """Free what `start` took."""

    def attempt(self, step: Any) -> Any:
        """Run one step; an error becomes the status of this contestant."""
        if self.status != "correct":
            return None
        try:
            return step()
        except OclabError as error:
            self.error = error
            self.reason = error.sentence.removeprefix(f"{self.name}: ")
            self.status = _status_of(error)
            return None

    def check(self) -> None:
        """Run once with poisoned outputs and compare the result with the right one."""
        self.attempt(self.run)
        self.verify()

    def verify(self) -> None:
        """Compare the outputs of the last run with the right ones."""
        if self.status != "correct":
            return
        task = self.task
        self.difference = self.attempt(
            lambda: task.operation.compare(task.problem, task.inputs, task.expected, self.outputs())
        )
        if self.difference is not None and not self.difference.ok:
            self.status = "correctness"
            self.reason = f"wrong result: {self.difference}"

    def measure(self) -> None:
        """Run once more and keep the time."""
        total = self.attempt(self.run)
        if total is not None:
            self.totals.append(total)

    def _measurement(self, **more: Any) -> Measurement:
        """Return the fields that every kind shares, with `more`."""
        return Measurement(
            self.name,
            self.kind,
            self.algorithm,
            self.status,
            self.reason,
            total_ms=Times.of(self.totals) if self.totals else None,
            work=self.task.problem.work,
            difference=self.difference,
            **more,
        )


def _status_of(error: OclabError) -> Status:
    if isinstance(error, ReferenceUnavailable):
        return "unavailable"
    if isinstance(error, BuildError):
        return "compile"
    if isinstance(error, InvalidConfig):
        return "constraints"
    return "runtime"


class OpenCL(Contestant):
    """An algorithm of the operation on an OpenCL device, from host array to host array."""

    def __init__(
        self,
        task: Task,
        device: Device,
        algorithm: str,
        config: Mapping[str, Any] | None = None,
        variant: str = "",
    ):
        name = f"opencl:{algorithm}" + (f"[{variant}]" if variant else "")
        super().__init__(task, name, "opencl", algorithm)
        self.device = device
        self.config: Mapping[str, Any] = dict(config or {})
        self._peaks = stored_peaks(device)
        self._work = task.problem.work
        self._dtype = getattr(task.problem, "dtype", None)
        self._kernel_ms: list[float] = []
        self._transfer_ms: list[float] = []
        self._outputs: Arrays = {}
        self._first_ms = 0.0
        self._execution: Execution | None = None

    def start(self) -> None:
        """Settle the configuration; the first run builds."""
        algorithm = self.task.operation.choose(self.task.problem, self.device, self.algorithm)
        self.config = algorithm.configure(self.task.problem, self.device, self.config)
        self._work = algorithm.work(self.task.problem)

    def run(self) -> float:
        """Solve once and read the events."""
        first = not self._outputs
        if first:
            self._outputs = self.task.poisoned_outputs()
        queue = default_queue(self.device, profiling=True)
        begin = time.perf_counter()
        execution = self.task.operation.run(
            self.task.problem,
            self.task.inputs,
            algorithm=self.algorithm,
            config=self.config,
            queue=queue,
            out=self._outputs,
        )
        total = (time.perf_counter() - begin) * 1e3
        if first:
            self._first_ms = total
            return total
        self._execution = execution
        if self.device.capabilities.event_timing:
            kernel, transfer = execution.kernel_ms, execution.transfer_ms
            if kernel > total * CLOCK_SLACK:
                raise LaunchError(
                    f"the events claim {kernel:.3g} ms in kernels where the host's clock saw "
                    f"{total:.3g} ms in all; this timing cannot be believed"
                )
            impossible = refusal(self._work, self._dtype, kernel, self._peaks)
            if impossible is not None:
                raise LaunchError(impossible)
            self._kernel_ms.append(kernel)
            self._transfer_ms.append(transfer)
        return total

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        return self._outputs

    def profile(self) -> list[str]:
        """Return a line a launch of the last run: its time and what the driver says of it."""
        if self._execution is None:
            return []
        return [f"{time:.4g} ms  {kernel}" for kernel, time in self._execution.profile()]

    def measurement(self) -> Measurement:
        """Return the row, with event times and the share of the device's peak."""
        kernel = float(np.median(self._kernel_ms)) if self._kernel_ms else None
        total = float(np.median(self.totals)) if self.totals else None
        doing = self._work, self._dtype, kernel or 0.0, self._peaks
        return self._measurement(
            config=dict(self.config),
            workers=self.device.compute_units,
            kernel_ms=kernel,
            transfer_ms=float(np.median(self._transfer_ms)) if self._transfer_ms else None,
            build_ms=None if total is None else max(0.0, self._first_ms - total),
            peak=fraction_of_peak(*doing),
            peak_note=above_peak(*doing),
        )


class ReferenceRun(Contestant):
    """A reference implementation of the operation; a patient one runs however long it takes.

    The runs of the others take no longer than `PATIENCE` together: they are fewer than asked
    for, or none where that is not enough for the checked run and a timed one.
    """

    def __init__(
        self,
        task: Task,
        reference: Reference,
        threads: int,
        device: Device | None = None,
        patient: bool = True,
    ):
        super().__init__(task, reference.name, reference.kind, reference.name)
        self.reference = reference
        self.threads = threads if reference.threaded else 1
        self.device = device
        self.patient = patient
        self._spent = 0.0
        self._prepared: Prepared | None = None

    def start(self) -> None:
        """Compile, or start the child process."""
        seconds = 0.0 if self.patient else self._estimate()
        if 2 * seconds > PATIENCE:
            raise ReferenceUnavailable(
                f"a run would take about {duration(seconds)}; --against {self.name} runs it"
            )
        like = {name: (array.shape, array.dtype) for name, array in self.task.expected.items()}
        self._prepared = prepare(
            self.reference, self.task.problem, self.task.inputs, like, self.threads, self.device
        )

    def _estimate(self) -> float:
        """Return how many seconds a run will take, from runs on a small problem.

        0 where the reference needs few steps, so that it is not worth trying.
        """
        operation, problem, steps = self.task.operation, self.task.problem, self.reference.steps
        if steps is None or steps(problem) <= FEW_STEPS:
            return 0.0
        small = operation.sample(problem)
        inputs = operation.generate(small, 0)
        expected = operation.expected(small, inputs)
        like = {name: (array.shape, array.dtype) for name, array in expected.items()}
        with closing(
            prepare(self.reference, small, inputs, like, self.threads, self.device)
        ) as prepared:
            seconds = min(prepared.run() for _ in range(SAMPLE_RUNS))
        return seconds * steps(problem) / steps(small)

    @property
    def prepared(self) -> Prepared:
        """The reference, ready to run."""
        if self._prepared is None:
            raise ReferenceUnavailable(f"{self.name} was not started")
        return self._prepared

    def run(self) -> float:
        """Solve once."""
        seconds = self.prepared.run()
        self._spent += seconds
        return seconds * 1e3

    def measure(self) -> None:
        """Run once more and keep the time, unless there is one and patience ends."""
        if self.patient or not self.totals or self._spent + self.totals[-1] / 1e3 <= PATIENCE:
            super().measure()

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        return self.prepared.outputs()

    def measurement(self) -> Measurement:
        """Return the row."""
        return self._measurement(threads=self.threads, workers=self.threads)

    def close(self) -> None:
        """Stop a child process."""
        if self._prepared is not None:
            self._prepared.close()
