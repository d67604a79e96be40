"""One configuration after the other on the device: built, checked, timed. Runs in the worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from statistics import median
from typing import Any

import numpy as np

from opencl_lab.discovery import select_device
from opencl_lab.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.measuring.doubt import doubt, unseen
from opencl_lab.measuring.guarded import Guarded
from opencl_lab.plan import check_plan
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import Execution, execute
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.solver import Problem
from opencl_lab.space import Config
from opencl_lab.tuning.evaluation import Evaluation, Status
from opencl_lab.tuning.task import TuningTask

__all__ = ["NEAR", "Trial"]

HOPELESS = 3.0  # a first run so much slower than the best needs no second one
NEAR = 1.3
"""What took so many times as long as the best cannot win any more."""
LEAST_RUNS, MOST_RUNS = 3, 25
LONG_MS = 1000.0
ENOUGH_MS = 100.0
FINAL_RUNS, FINAL_MS = 10, 50.0


class _Wrong(Exception):
    """A result that is not right."""


class _Stage:
    """One problem with its data on the device and the right results."""

    def __init__(self, task: TuningTask, problem: Problem, config: Config, queue: Any):
        self.task, self.problem, self.queue = task, problem, queue
        self.inputs: Arrays = {
            name: np.ascontiguousarray(array)
            for name, array in task.operation.generate(problem, task.seed, **task.data).items()
        }
        self._bytes = {name: array.tobytes() for name, array in self.inputs.items()}
        self.expected = task.operation.expected(problem, self.inputs)
        plan = task.algorithm.plan(problem, config, task.device)
        self._in = {b.name: Guarded(queue, b.shape, b.dtype) for b in plan.with_role("in")}
        self._out = {b.name: Guarded(queue, b.shape, b.dtype) for b in plan.with_role("out")}
        self.load()

    def load(self) -> None:
        """Put the inputs on the device."""
        for name, guarded in self._in.items():
            guarded.poison()
            guarded.set(self.inputs[name])

    def build(self, config: Config) -> Executable:
        """Plan, check the limits and build, or return what was built before."""
        task, session = self.task, session_of(self.queue)

        def plan() -> Any:
            planned = task.algorithm.plan(self.problem, config, task.device)
            check_plan(planned, task.device)
            return planned

        return session.executable(("tuning", task.algorithm_name, self.problem, config), plan)

    def run(self, executable: Executable) -> Execution:
        """Run once and wait."""
        arrays = {name: guarded.array for name, guarded in self._in.items()}
        out = {name: guarded.array for name, guarded in self._out.items()}
        execution = execute(executable, arrays, self.queue, out)
        self.queue.finish()
        return execution

    def poison(self) -> None:
        """Overwrite the outputs, so that results of an earlier run cannot pass."""
        for guarded in self._out.values():
            guarded.poison()
        self.queue.finish()

    def check(self) -> None:
        """Compare the outputs of the last run; raise `_Wrong` if anything is not as it should.

        Inputs must be as they were, and nothing written outside the arrays.
        """
        where = f"on {_sizes(self.problem)}"
        for name, guarded in self._out.items():
            damage = guarded.damage()
            if damage is not None:
                raise _Wrong(f"it writes outside the array {name!r} {where}: {damage}")
        for name, guarded in self._in.items():
            if guarded.damage() is not None or guarded.get().tobytes() != self._bytes[name]:
                raise _Wrong(f"it writes to its input {name!r} {where}")
        actual = {name: guarded.get() for name, guarded in self._out.items()}
        difference = self.task.operation.compare(self.problem, self.inputs, self.expected, actual)
        if not difference.ok:
            raise _Wrong(f"wrong result {where}: {difference}")


def _sizes(problem: Problem) -> str:
    return ", ".join(f"{name}={getattr(problem, name)}" for name in problem.sizes)


class Trial:
    """Evaluates configurations of one task.

    Parameters
    ----------
    task : TuningTask
    say : callable
        Called with the name of each phase before it begins; how long each may
        take is for the listener to decide.
    """

    def __init__(self, task: TuningTask, say: Callable[[str], None]):
        device = select_device(task.device.spec)
        if device.key != task.device.key:
            raise LaunchError(f"device {task.device.spec} is {device.key} here")
        self._task = task = replace(task, device=device)
        self._say = say
        queue = default_queue(device, profiling=True)
        config = task.algorithm.default_config(task.problem, device)
        self._check_case, *self._others = (
            _Stage(task, problem, config, queue) for problem in task.check_problems
        )
        self._timed = _Stage(task, task.problem, config, queue)
        self._passed: set[Config] = set()

    def evaluate(self, config: Config, best_ms: float) -> Evaluation:
        """Build, check and time a configuration.

        The first run that counts is enough for a configuration that takes more
        than three times as long as the best so far; one that may still win is
        checked with the other check cases, and again after it was timed.
        """
        begin = time.perf_counter()
        build_ms = check_ms = 0.0
        times: tuple[float, ...] = ()

        def failed(status: Status, error: object) -> Evaluation:
            return Evaluation(config, status, str(error), (), build_ms, check_ms, _now())

        try:
            self._say("building")
            small, large = self._check_case.build(config), self._timed.build(config)
            # Drivers such as PoCL compile when a kernel is launched for the first time.
            self._say("launching")
            self._check_case.poison()
            self._check_case.run(small)
            build_ms = _since(begin)
            self._gate(large)
            check_ms = _since(begin) - build_ms
            times = self._time(large, best_ms)
            if median(times) <= NEAR * best_ms:
                self._prove(config)
                self._passed.add(config)
        except BuildError as error:
            return failed("compile", f"{error.sentence}{error.first_error}")
        except InvalidConfig as error:
            return failed("constraints", error)
        except _Wrong as error:
            for stage in (self._check_case, *self._others, self._timed):
                stage.load()
            return failed("correctness", error)
        except MemoryError:
            return failed("runtime", "the host ran out of memory")
        except Exception as error:
            return failed("runtime", str(error) or repr(error))
        return Evaluation(config, "correct", "", times, build_ms, check_ms, _now())

    def again(self, config: Config) -> Evaluation:
        """Time a few runs more; what this process has not checked yet is checked first."""
        if config not in self._passed:
            return self.evaluate(config, float("inf"))
        try:
            executable = self._timed.build(config)
            self._say("timing")
            times = self._repeat(executable, [], FINAL_RUNS, FINAL_MS)
            self._say("checking")
            self._timed.check()
        except _Wrong as error:
            self._timed.load()
            return Evaluation(config, "correctness", str(error), timestamp=_now())
        except Exception as error:
            return Evaluation(config, "runtime", str(error) or repr(error), timestamp=_now())
        return Evaluation(config, "correct", "", times, timestamp=_now())

    def _gate(self, large: Executable) -> None:
        """Check the check case, which has run, then the timed one; this warms it up too."""
        self._say("checking")
        self._check_case.check()
        self._checked_run(self._timed, large)

    def _prove(self, config: Config) -> None:
        """Check what the gate left out: a later run, and the other check cases."""
        self._say("checking")
        self._timed.check()
        for stage in self._others:
            self._say("building")
            self._checked_run(stage, stage.build(config))

    def _checked_run(self, stage: _Stage, executable: Executable) -> None:
        self._say("launching")
        stage.poison()
        stage.run(executable)
        self._say("checking")
        stage.check()

    def _time(self, executable: Executable, best_ms: float) -> tuple[float, ...]:
        self._say("timing")
        first = self._once(executable)
        if first[0] > HOPELESS * best_ms:
            return first[:1]
        return self._repeat(executable, [first], MOST_RUNS, ENOUGH_MS)

    def _repeat(
        self, executable: Executable, runs: list[tuple[float, float]], most: int, enough_ms: float
    ) -> tuple[float, ...]:
        """Run until there is enough to take the median of."""
        while len(runs) < LEAST_RUNS or (sum(r[0] for r in runs) < enough_ms and len(runs) < most):
            runs.append(self._once(executable))
        # A single run may have waited for the host; all of them did not.
        kernel, host = min(run[0] for run in runs), min(run[1] for run in runs)
        _refuse(unseen(kernel, host, len(executable.plan.launches)))
        return tuple(run[0] for run in runs)

    def _once(self, executable: Executable) -> tuple[float, float]:
        """Return the times of one run in milliseconds, by its events and by the host's clock."""
        begin = time.perf_counter()
        execution = self._timed.run(executable)
        host = _since(begin)
        if host > LONG_MS:  # the next one gets a time limit of its own
            self._say("timing")
        if not self._task.device.capabilities.event_timing:
            return host, host
        kernel = execution.kernel_ms
        _refuse(doubt(kernel, host_ms=host))
        return kernel, host


def _refuse(doubted: str | None) -> None:
    if doubted is not None:
        raise LaunchError(doubted)


def _since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1e3


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
