"""Builds the programs of configurations before they are tried. Runs in processes of its own.

The driver keeps what it has built on disk, where the process that measures finds it. Nothing is
timed or judged here, but what the compiler or a limit of the device refuses.
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
"""Groups in a dimension below which PoCL compiles another version of a kernel."""


class Builder:
    """Builds what a `Trial` will need, and says the name of each phase before it begins.

    On CPUs it launches too: there drivers compile a kernel when it is launched for the first time
    by groups of its size. On other devices launches would disturb what is measured meanwhile.
    """

    def __init__(self, task: TuningTask, say: Callable[[str], None]):
        self._task = task = task.here()
        self._say = say
        self._queue = task.device.queue(profiling=True)
        self._launches = task.device.kind == "cpu"
        self._stages: dict[Problem, Stage] = {}

    def build(self, config: Config, whole: bool) -> Built:
        """Build for the first check case, or for all if `whole`; return what was found."""
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
            if status != "runtime":  # whoever measures will see whether that comes again
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
        for problem in (*cases, self._task.problem):  # the largest last: it is seldom needed
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
    """Return what a kernel that is compiled at its launch depends on."""
    groups = zip(launch.global_size, launch.local_size, strict=True)
    small = all(items // local < SMALL_GRID for items, local in groups)
    return (
        *(launch.template, launch.kernel, dict(launch.params), launch.options),
        *(launch.local_size, small),
    )
