"""The tuner's side of the worker: time limits, crashes, and a new worker after each."""

from __future__ import annotations

import math
import pickle
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from opencl_lab.core.errors import InvalidProblem, LaunchError
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.tuning.ahead import (
    BUILD_FACTOR,
    GENEROUS,
    HOST_SECONDS,
    LEAST_BUILD,
    Ahead,
    builders_for,
)
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.workers.link import Frames
from opencl_lab.lab.workers.serving import Failed
from opencl_lab.lab.workers.worker import Died, Worker, opening

LEAST_RUN, RUN_FACTOR = 2.0, 10.0
GRACE = 5.0
PHASE_SHARE = 1 / 3
"""Of the time limit, for one phase of a configuration: what needs more cannot be tried in time."""


def longest_phase(timeout: float | None, time_limit: float | None) -> float:
    """Return the seconds that no phase of a configuration may exceed on the device.

    Both limits are as `opencl_lab.tune` takes them.
    """
    share = math.inf if time_limit is None else max(GRACE, PHASE_SHARE * time_limit)
    return share if timeout is None else min(share, timeout)


def no_reference(first: Config, reason: str) -> LaunchError:
    """Return the error that nothing can be compared, as the first configuration does not run."""
    return LaunchError(
        f"the first configuration {first}, with which all others are compared, does not run: "
        f"{reason}; put one first that runs, or give its expected result (--check FILE), or more "
        "time (--timeout, --time-limit)"
    )


class _Lost(Exception):
    """The worker ended, or takes too long."""

    def __init__(self, status: Status, reason: str):
        super().__init__(reason)
        self.status: Status = status


def _opening(role: str, task: TuningTask) -> Frames:
    """Return what a worker of some role reads first."""
    try:
        return opening(role, task)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidProblem(
            f"{task.operation.name} cannot be tuned in a process of its own: {error}; everything "
            "it is made of must be importable from a module"
        ) from error


class Sandbox:
    """Evaluates configurations of a task in a process that may die of them.

    A crash, a hang, an abort or the end of memory costs that one configuration: the worker is
    killed with all it has started, and the next one takes over.

    `timeout` is in seconds for each phase of a configuration. Without it the limits are generous at
    first; then a build may take ten times as long as usual, and runs ten times as long as those of
    the best so far. No phase may take more than a third of `time_limit`, the seconds of the whole
    search. By default there are as many `builders` as cores for them.
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
        self._opening = _opening("opencl_lab.lab.tuning.trial:Trial", task)
        self._first: Config | None = None
        if task.operation.reference_is_first:  # the worker runs it before anything is asked
            self._first = task.built_in
        self._worker: Worker | None = None
        self._builds: list[float] = []
        self.restarts = 0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """How long each phase has taken, all configurations together."""
        self.ahead = Ahead(
            _opening("opencl_lab.lab.tuning.builder:Builder", task),
            builders_for(task.device) if builders is None else builders,
            alternate=task.device.kind == "cpu",
            timeout=self._timeout,
            longest=self._longest,
        )

    def choose(self, configs: Sequence[Config], seconds: float, whole: bool = False) -> Config:
        """Return which of these to evaluate now: one that is built, while others are built."""
        with self._counted("waiting for programs"):
            return self.ahead.choose(configs, seconds, whole)

    @property
    def built_ahead(self) -> int:
        """How many configurations were built before they were asked for."""
        return self.ahead.built

    def evaluate(self, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        """Check and time a configuration; None if the tuner's own time ran out meanwhile.

        If the first one gives the reference and hangs, it is that one which is returned.
        """
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
        """Time a configuration a few times more, and check it if this worker has not yet."""
        return self._ask("again", config, seconds)

    def close(self) -> None:
        """End all processes, also in the middle of a run; they have nothing to save."""
        self._end_worker()
        self.ahead.close()

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    @contextmanager
    def _counted(self, what: str) -> Iterator[None]:
        """Count the seconds that something takes."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] += time.monotonic() - begin

    def _ask(
        self, do: str, config: Config, seconds: float, best_ms: float = math.inf
    ) -> Evaluation | None:
        begin = time.monotonic()
        try:
            worker = self._ready()
        except _Lost as loss:
            if self._first is None:
                raise LaunchError(f"the tuner's worker could not start: {loss}") from None
            if loss.status != "timeout":
                raise no_reference(self._first, str(loss)) from None
            return self._failed(self._first, loss, begin)
        begin = time.monotonic()
        worker.send(do, config, *([best_ms] if do == "evaluate" else []))
        try:
            evaluation: Evaluation = self._follow(worker, "starting", best_ms, begin + seconds)
        except _Lost as loss:
            return self._failed(config, loss, begin)
        except Failed as error:
            return self._failed(config, _Lost("runtime", str(error)), begin)
        except BaseException:
            self._end_worker()  # an answer is under way that nobody will wait for
            raise
        if evaluation is None:
            self._end_worker()
            return None
        if evaluation.status == "correct" and evaluation.build_ms:
            self._builds.append(evaluation.build_ms / 1e3)
        elif evaluation.status == "correctness" and "outside" in evaluation.reason:
            self._end_worker()  # nobody knows what else it has overwritten
        return evaluation

    def _failed(self, config: Config, loss: _Lost, begin: float) -> Evaluation:
        """End the worker, and return what became of the configuration that it died of."""
        self._end_worker()
        spent = (time.monotonic() - begin) * 1e3
        return Evaluation(config, loss.status, str(loss), build_ms=spent, timestamp=timestamp())

    def _follow(
        self, worker: Worker, phase: str, best_ms: float = math.inf, end: float = math.inf
    ) -> Any:
        """Follow a worker through its phases, each with its time limit; return what it answers.

        None where the tuner's own time ends first.
        """
        while True:
            limit = self._limit(phase, best_ms)
            deadline = time.monotonic() + limit
            try:
                with self._counted(phase):
                    kind, value = worker.receive(min(deadline, end + GRACE))
            except TimeoutError:
                if time.monotonic() < deadline:
                    return None
                raise _Lost("timeout", f"no end within {limit:.3g} s, while {phase}") from None
            except Died as death:
                raise _Lost("runtime", f"the process died: {death}, while {phase}") from None
            if kind == "done":
                return value
            phase = value

    def _limit(self, phase: str, best_ms: float) -> float:
        """Return how many seconds a phase may take."""
        if phase in ("preparing", "checking"):
            return HOST_SECONDS
        if phase == "starting":
            return GENEROUS
        if self._timeout is not None:
            return self._timeout
        usual, run = GENEROUS, RUN_FACTOR * best_ms / 1e3
        if math.isfinite(run):
            if phase == "timing":  # of short runs many go into one, of long ones each is one
                usual = max(LEAST_RUN, run)
            elif self._builds:
                usual = run + max(LEAST_BUILD, BUILD_FACTOR * median(self._builds))
        return min(usual, self._longest)

    def _ready(self) -> Worker:
        """Return a worker that waits for requests.

        `_Lost` if it ends or hangs before it does; an error that it has reported is raised.
        """
        if self._worker is not None and self._worker.process.poll() is None:
            return self._worker
        self._end_worker()  # if it has died since its last answer, no configuration is to blame
        self._worker = worker = Worker(self._opening)
        self.restarts += 1
        try:
            self._follow(worker, "preparing")
        except BaseException as error:
            self._end_worker()
            if isinstance(error, Failed):  # what is wrong with the task, not with the worker
                ours = LaunchError(f"the tuner's worker could not start: {error}")
                raise error.error or ours from None
            raise
        return worker
