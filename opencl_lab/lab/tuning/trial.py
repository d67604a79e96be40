"""Configurations on the device: checked and timed in the worker, built ahead in builders.

The driver caches builds on disk, where the worker finds those of builders, which time and check
nothing: only the compiler or a limit of the device may refuse a configuration there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Launch
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.measuring.timing_sanity import implausible, unaccounted
from opencl_lab.lab.tuning.evaluation import Built, Evaluation
from opencl_lab.lab.tuning.stage import Stage, verdict
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Problem
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import Execution
from opencl_lab.runtime.session import session_of

HOPELESS = 3.0  # ratio to the best time from which one run is enough
NEAR = 1.3
"""Ratio to the best time above which a configuration cannot win."""
LEAST_RUNS, MOST_RUNS = 3, 25
LONG_MS = 1000.0
ENOUGH_MS = 100.0
FINAL_RUNS, FINAL_MS = 10, 50.0
SMALL_GRID = 65_535
"""Number of groups in a dimension up to which PoCL compiles another version of a kernel."""


class Evaluator:
    """Evaluates configurations of one task.

    It reports each phase before it begins, so that the tuner can apply a timeout.
    """

    def __init__(self, task: TuningTask, say: Callable[[str], None]):
        self._task = task = task.here()
        device = task.device
        self._say = say
        queue = device.queue(profiling=True)
        config = task.built_in
        task.operation.make_reference(say)
        say("preparing")
        self._check_case, *self._others = (
            Stage(task, problem, config, queue) for problem in task.check_problems
        )
        self._timed = Stage(task, task.problem, config, queue)
        for stage in (self._check_case, *self._others, self._timed):
            stage.expected  # noqa: B018  (computed before anything is timed, without a timeout)
            stage.poison()  # builds the fingerprint kernel
        self._passed = {config}  # the built-in one takes part in the finals in any case

    def prove(self, config: Config) -> Evaluation:
        """Evaluate a configuration with all check cases."""
        return self.evaluate(config, math.inf, whole=True)

    def evaluate(self, config: Config, best_ms: float, whole: bool = False) -> Evaluation:
        """Build, check and time a configuration.

        A configuration that takes more than `HOPELESS` times the best time so far is timed once.
        One that may still win is checked again after timing; with `whole` it is checked with the
        other check cases, too.
        """
        begin = time.perf_counter()
        spent = {"build_ms": 0.0, "check_ms": 0.0}

        def times() -> tuple[float, ...]:
            self._say("building")
            small, large = self._check_case.build(config), self._timed.build(config)
            # Drivers such as PoCL compile a kernel at its first launch.
            self._say("launching")
            self._check_case.poison()
            self._check_case.run(small)
            spent["build_ms"] = _since(begin)
            hopeless = self._gate(large, best_ms)
            spent["check_ms"] = _since(begin) - spent["build_ms"]
            found = self._time(large, best_ms, hopeless)
            if median(found) <= NEAR * best_ms:
                self._say("checking")
                self._timed.check()
            if whole:
                self._check_others(config)
            return found

        return self._judged(config, times, spent)

    def again(self, config: Config) -> Evaluation:
        """Time a few more runs; all check cases come first, unless this process has done them."""
        if config not in self._passed:
            return self.prove(config)

        def times() -> tuple[float, ...]:
            executable = self._timed.build(config)
            self._say("timing")
            found = self._repeat(executable, [], FINAL_RUNS, FINAL_MS)
            self._say("checking")
            self._timed.check()
            return found

        return self._judged(config, times, {})

    def _judged(
        self, config: Config, times: Callable[[], tuple[float, ...]], spent: Mapping[str, float]
    ) -> Evaluation:
        """Return an evaluation with the times, or with the status of an error."""
        status: Status = "correct"
        found: tuple[float, ...] = ()
        reason = ""
        try:
            found = times()
        except Exception as error:
            status, reason = verdict(error)
            if status == "correctness":
                for stage in (self._check_case, *self._others, self._timed):
                    stage.load()
        return Evaluation(config, status, reason, found, **spent, timestamp=timestamp())

    def _gate(self, large: Executable, best_ms: float) -> bool:
        """Check the check case, which has run, then the timed problem, which warms up, too.

        Return whether it is so slow that its results on the timed problem were not compared.
        """
        self._say("checking")
        self._check_case.check()
        self._say("launching")
        self._timed.poison()
        hopeless = self._once(large)[0] > HOPELESS * best_ms
        self._say("checking")
        self._timed.check(compared=not hopeless)
        return hopeless

    def _check_others(self, config: Config) -> None:
        """Check the check cases that `_gate` leaves out."""
        for stage in self._others:
            self._say("building")
            executable = stage.build(config)
            self._say("launching")
            stage.poison()
            stage.run(executable)
            self._say("checking")
            stage.check()
        self._passed.add(config)

    def _time(self, executable: Executable, best_ms: float, hopeless: bool) -> tuple[float, ...]:
        """Time a configuration: once if it is hopeless, a few times if it is slow, else often."""
        self._say("timing")
        first = self._once(executable)
        if first[0] > HOPELESS * best_ms:
            return first[:1]
        if hopeless:  # in its first run alone
            self._say("checking")
            self._timed.check()
            self._say("timing")
        return self._repeat(executable, [first], MOST_RUNS, ENOUGH_MS, NEAR * best_ms)

    def _repeat(
        self,
        executable: Executable,
        runs: list[tuple[float, float]],
        most: int,
        enough_ms: float,
        slow_ms: float = math.inf,
    ) -> tuple[float, ...]:
        """Run until there are enough times for a median; a slow configuration needs fewer."""
        while len(runs) < LEAST_RUNS or (
            sum(run[0] for run in runs) < enough_ms
            and len(runs) < most
            and min(run[0] for run in runs) <= slow_ms
        ):
            runs.append(self._once(executable))
        # A single run may have waited for the host, but not all of them.
        kernel, host = min(run[0] for run in runs), min(run[1] for run in runs)
        _refuse(unaccounted(kernel, host, len(executable.plan.launches)))
        return tuple(run[0] for run in runs)

    def _once(self, executable: Executable) -> tuple[float, float]:
        """Return the times of one run in milliseconds, by its events and by the host's clock."""
        self._timed.restore()
        done: list[Execution] = []
        host = 1e3 * back_to_back(lambda: done.append(self._timed.run(executable)), 1)[1]
        if host > LONG_MS:  # the next run gets a timeout of its own
            self._say("timing")
        if not self._task.device.capabilities.event_timing:
            return host, host
        kernel = done[0].kernel_ms
        _refuse(implausible(kernel, host_ms=host))
        return kernel, host


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise LaunchError(reason)


def _since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1e3


# ------------------------------------------------------------------------- in a builder


class AheadBuilder:
    """Builds the programs that an `Evaluator` will need, and reports each phase before it begins.

    On CPUs it also launches them, since drivers for CPUs compile a kernel at its first launch with
    a group size. On other devices launches would disturb the measurements of the worker.
    """

    def __init__(self, task: TuningTask, say: Callable[[str], None]):
        self._task = task = task.here()
        self._say = say
        self._queue = task.device.queue(profiling=True)
        self._launches = task.device.kind == "cpu"
        self._stages: dict[Problem, Stage] = {}

    def build(self, config: Config, whole: bool) -> Built:
        """Build for the first check case, or for all if `whole`."""
        begin = time.perf_counter()
        refusal: Status | None = None
        reason = ""
        try:
            self._say("building")
            cases = self._task.check_problems if whole else self._task.check_problems[:1]
            if self._launches:
                self._launch(config, cases)
            else:
                self._build(config, cases)
        except Exception as error:
            status, reason = verdict(error)
            if status != "runtime":  # the measuring worker sees whether that happens again
                refusal = status
        return Built(_since(begin), refusal, reason)

    def _build(self, config: Config, cases: Sequence[Problem]) -> None:
        session = session_of(self._queue)
        for problem in (*cases, self._task.problem):
            launches = self._task.plan(config, problem).launches
            for program, launch in zip(session.programs(launches), launches, strict=True):
                session.kernel(program, launch)

    def _launch(self, config: Config, cases: Sequence[Problem]) -> None:
        known: list[tuple[object, ...]] = []
        for problem in (*cases, self._task.problem):  # the largest last, as it is rarely needed
            launches = self._task.plan(config, problem).launches
            if all(_compiled(launch) in known for launch in launches):
                continue
            self._say("building")
            executable = self._stage(problem).build(config)
            self._say("launching")
            self._stage(problem).restore()
            self._stage(problem).run(executable)
            known += [_compiled(launch) for launch in launches]

    def _stage(self, problem: Problem) -> Stage:
        if problem not in self._stages:
            self._stages[problem] = Stage(self._task, problem, self._task.built_in, self._queue)
        return self._stages[problem]


def _compiled(launch: Launch) -> tuple[object, ...]:
    """Return what the compilation of a kernel at its launch depends on."""
    groups = zip(launch.global_size, launch.local_size, strict=True)
    small = all(items // local < SMALL_GRID for items, local in groups)
    return (
        *(launch.template, launch.kernel, dict(launch.params), launch.options),
        *(launch.local_size, small),
    )
