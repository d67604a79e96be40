"""The tuner's side of the worker: time limits, crashes, and a new worker after each."""

from __future__ import annotations

import math
import pickle
import time
from statistics import median
from typing import Any

from opencl_lab.core.errors import InvalidProblem, LaunchError
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.tuning.ahead import (
    BUILD_FACTOR,
    GENEROUS_SECONDS,
    HOST_SECONDS,
    LEAST_BUILD_SECONDS,
    Ahead,
    builders_for,
)
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.workers.link import Frames
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import Died, Worker, opening

LEAST_RUN_SECONDS, RUN_FACTOR = 2.0, 10.0
GRACE_SECONDS = 5.0
PHASE_SHARE = 1 / 3
"""Largest share of the time limit for one phase of a configuration."""


def longest_phase(timeout: float | None, time_limit: float | None) -> float:
    """Return the timeout in seconds of any phase of a configuration on the device.

    Both arguments are those of `opencl_lab.tune`.
    """
    share = math.inf if time_limit is None else max(GRACE_SECONDS, PHASE_SHARE * time_limit)
    return share if timeout is None else min(share, timeout)


class _Lost(Exception):
    """The worker died or timed out."""

    def __init__(self, status: Status, reason: str):
        super().__init__(reason)
        self.status: Status = status


def _opening(role: str, task: TuningTask) -> Frames:
    """Return the first message to a worker of a role."""
    try:
        return opening(role, task)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidProblem(
            f"{task.operation.name} cannot be tuned in a process of its own: {error}; everything "
            "it is made of must be importable from a module"
        ) from error


class Sandbox:
    """Evaluates configurations of a task in a worker, which they may crash.

    A crash, a hang, an abort or exhausted memory costs that one configuration: the worker is
    killed with all processes that it has started, and a new one takes over.

    `timeout` is in seconds for each phase of a configuration. Without it timeouts are generous at
    first; later a build may take ten times the median, and runs ten times the best time so far. No
    phase may take more than a third of `time_limit`, the seconds of the whole search. By default
    `builders_for` decides the number of `builders`.
    """

    def __init__(
        self,
        task: TuningTask,
        timeout: float | None = None,
        builders: int | None = None,
        time_limit: float | None = None,
    ):
        self._longest = longest_phase(timeout, time_limit)
        self._timeout = None if timeout is None else self._longest
        self._opening = _opening("opencl_lab.lab.tuning.trial:Evaluator", task)
        # The worker runs the first configuration before anything else, if it is the reference.
        self._first = task.built_in if task.operation.reference_is_first else None
        self._worker: Worker | None = None
        self._builds: list[float] = []
        self.restarts = 0
        self.ahead = Ahead(
            _opening("opencl_lab.lab.tuning.trial:AheadBuilder", task),
            builders_for(task.device) if builders is None else builders,
            alternate=task.device.kind == "cpu",
            timeout=self._timeout,
            longest=self._longest,
        )

    def evaluate(self, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        """Check and time a configuration; None if the time limit of the search ran out."""
        refused = self.ahead.verdict(config)
        if refused is not None:
            return refused
        evaluation = self._ask("evaluate", config, seconds, best_ms)
        if evaluation is not None:
            self.ahead.learn(evaluation)
        return evaluation

    def prove(self, config: Config, seconds: float) -> Evaluation | None:
        """Evaluate a configuration with all check cases."""
        return self._ask("prove", config, seconds)

    def again(self, config: Config, seconds: float) -> Evaluation | None:
        """Time a configuration again, and check it if this worker has not done so yet."""
        return self._ask("again", config, seconds)

    def close(self) -> None:
        """End all processes, even during a run."""
        self._end_worker()
        self.ahead.close()

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _ask(
        self, do: str, config: Config, seconds: float, best_ms: float = math.inf
    ) -> Evaluation | None:
        try:
            worker = self._ready()
        except _Lost as loss:
            if self._first is None:
                raise LaunchError(f"the tuner's worker could not start: {loss}") from None
            raise LaunchError(
                f"the first configuration {self._first}, with which all others are compared, does "
                f"not run: {loss}; put one first that runs, or give its expected result (--check "
                "FILE), or more time (--timeout, --time-limit)"
            ) from None
        begin = time.monotonic()
        worker.send(do, config, *([best_ms] if do == "evaluate" else []))
        try:
            evaluation: Evaluation = self._follow(worker, "starting", best_ms, begin + seconds)
        except _Lost as loss:
            return self._failed(config, loss, begin)
        except Failed as error:
            return self._failed(config, _Lost("runtime", str(error)), begin)
        except BaseException:
            self._end_worker()  # its answer will not be read
            raise
        if evaluation is None:
            self._end_worker()
            return None
        if evaluation.status == "correct" and evaluation.build_ms:
            self._builds.append(evaluation.build_ms / 1e3)
        elif evaluation.status == "correctness" and "outside" in evaluation.reason:
            self._end_worker()  # it may have overwritten other memory
        return evaluation

    def _failed(self, config: Config, loss: _Lost, begin: float) -> Evaluation:
        """End the worker, and return the evaluation of the configuration that broke it."""
        self._end_worker()
        spent = (time.monotonic() - begin) * 1e3
        return Evaluation(config, loss.status, str(loss), build_ms=spent, timestamp=timestamp())

    def _follow(
        self, worker: Worker, phase: str, best_ms: float = math.inf, end: float = math.inf
    ) -> Any:
        """Wait for a worker's answer, with a timeout for each of its phases.

        Return None if the time limit of the search ends first.
        """
        while True:
            limit = self._limit(phase, best_ms)
            deadline = time.monotonic() + limit
            try:
                kind, value = worker.receive(min(deadline, end + GRACE_SECONDS))
            except TimeoutError:
                if time.monotonic() < deadline:
                    return None
                raise _Lost("timeout", f"timed out after {limit:.3g} s, while {phase}") from None
            except Died as death:
                raise _Lost("runtime", f"the process died: {death}, while {phase}") from None
            if kind == "done":
                return value
            phase = value

    def _limit(self, phase: str, best_ms: float) -> float:
        """Return the timeout of a phase in seconds."""
        if phase in ("preparing", "checking"):
            return HOST_SECONDS
        if phase == "starting":
            return GENEROUS_SECONDS
        if self._timeout is not None:
            return self._timeout
        usual, run = GENEROUS_SECONDS, RUN_FACTOR * best_ms / 1e3
        if math.isfinite(run):
            if phase == "timing":  # this phase has many short runs, or one long one
                usual = max(LEAST_RUN_SECONDS, run)
            elif self._builds:
                usual = run + max(LEAST_BUILD_SECONDS, BUILD_FACTOR * median(self._builds))
        return min(usual, self._longest)

    def _ready(self) -> Worker:
        """Return a worker that waits for requests.

        `_Lost` is raised if it ends or hangs before; an error that it has reported is raised, too.
        """
        if self._worker is not None and self._worker.process.poll() is None:
            return self._worker
        self._end_worker()  # if it died after its last answer, no configuration caused that
        self._worker = worker = Worker(self._opening)
        self.restarts += 1
        try:
            self._follow(worker, "preparing")
        except BaseException as error:
            self._end_worker()
            if isinstance(error, Failed):  # an error of the task, not of the worker
                ours = LaunchError(f"the tuner's worker could not start: {error}")
                raise error.error or ours from None
            raise
        return worker
