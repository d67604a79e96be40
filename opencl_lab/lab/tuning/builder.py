"""Builds the programs of configurations before they are tried. Runs in builder processes.

The driver caches builds on disk, where the measuring worker finds them. Nothing is timed or
checked here, except that the compiler or a limit of the device may refuse a configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from opencl_lab.core.plan import Launch
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.tuning.evaluation import Built
from opencl_lab.lab.tuning.stage import Stage, verdict
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Problem
from opencl_lab.runtime.session import session_of

SMALL_GRID = 65_535
"""Number of groups in a dimension up to which PoCL compiles another version of a kernel."""


class AheadBuilder:
    """Builds the programs that a `Evaluator` will need, and reports each phase before it begins.

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
        return Built((time.perf_counter() - begin) * 1e3, refusal, reason)

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
