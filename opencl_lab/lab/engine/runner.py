"""The runner: all implementations of a point are checked, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.engine.implementations import LONG_MS, Implementation, Workload
from opencl_lab.lab.engine.ours import OpenCL
from opencl_lab.lab.engine.request import Point, Request, check_point
from opencl_lab.lab.engine.row import Measurement, exit_status, over_baseline
from opencl_lab.lab.measuring.rest import rest
from opencl_lab.lab.measuring.rounds import LEAST_ROUNDS, Rounds
from opencl_lab.lab.reference.descriptor import Arrays

CHOSEN = "auto takes it"

StepReport: TypeAlias = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and what comes next."""


def one_of(progress: StepReport, index: int, parts: int, label: str) -> StepReport:
    """Return a progress report for one of several parts of about the same length."""
    return lambda done, total, step: progress(
        index * 100 + done * 100 // max(total, 1), parts * 100, f"{label}, {step}"
    )


@dataclass(frozen=True)
class Comparison:
    """The measured rows of a workload, and the outputs of the first right algorithm."""

    workload: Workload
    measurements: list[Measurement]
    outputs: Arrays
    errors: list[Exception]
    profiles: dict[str, list[str]]  # a line about every launch, by the name of the row

    @property
    def exit_status(self) -> int:
        """See `opencl_lab.lab.engine.row.exit_status`."""
        return exit_status(self.measurements)


class _Steps:
    """Counts the steps of a comparison while it names each before it begins.

    How many rows will be timed is only known where `repeats` says so: else all together count as
    so many steps as there are at least.
    """

    def __init__(self, rows: int, repeats: int | None, report: StepReport):
        self._done = 0  # those that were named
        self._timed = rows * (repeats or LEAST_ROUNDS)
        # The input and the right result; of each row a start, a first run and a check.
        self._total = 2 + 3 * rows + self._timed
        self._report = report

    def next(self, label: str) -> None:
        self._report(self._done, self._total, label)
        self._done += 1

    def timed(self, share: float, label: str) -> None:
        """Name a row; so much of all rows is over."""
        self._report(self._done + round(share * self._timed), self._total, label)

    def all_timed(self) -> None:
        self._done += self._timed


def run_point(
    point: Point, *, device: Device, progress: StepReport = lambda done, total, label: None
) -> Comparison:
    """Measure algorithms and references on one problem, taking turns.

    Every implementation first runs once with poisoned outputs and is checked
    against `Operation.expected`; then all make rows of calls in turns, see `Rounds`: as many as
    the request asks for, or until the spread is small or the time is up.

    Where references have their data on the device, so have further runs of the algorithms:
    data on the host and on the device are never set against each other.

    It raises what `check_point` raises, before inputs are made, and ReferenceUnavailable if a
    reference asked for by name cannot run here.
    """
    chosen, problem, request = point.operation, point.problem, point.request
    schedule = check_point(point, device)
    steps = _Steps(len(schedule.names), request.repeats, progress)
    steps.next("input")
    inputs = point.make_inputs()
    steps.next("right result on the host")
    workload = Workload(chosen, problem, inputs, chosen.expected(problem, inputs))
    with ExitStack() as stack:
        implementations = schedule.implementations(workload, device)
        for implementation in implementations:
            implementation.timed = request.timed
            if request.budget is not None:
                budget_ms = max(LONG_MS, request.budget * 1e3)
                implementation.limit_ms = min(implementation.limit_ms, budget_ms)
            stack.callback(implementation.close)
            steps.next(f"{implementation.name}, start")
            implementation.attempt(implementation.start)
            missing = implementation.error if implementation.status == "unavailable" else None
            if missing is not None and schedule.references.by_name:
                raise missing
        _take_turns(implementations, request, steps)
        steps.next("done")
        rows = [item.measurement() for item in implementations]
        ours = [item for item in implementations if isinstance(item, OpenCL)]
        return Comparison(
            workload,
            over_baseline(_with_choice(rows, workload, device), request.baseline),
            next((item.outputs() for item in ours if item.status == "correct"), {}),
            [item.error for item in ours if item.error is not None],
            {item.name: item.profile() for item in ours},
        )


def _take_turns(implementations: Sequence[Implementation], request: Request, steps: _Steps) -> None:
    """Check each implementation, time all of them in rounds, and check their last results."""
    for implementation in implementations:
        steps.next(f"{implementation.name}, first run")
        implementation.check()
    able = [item for item in implementations if item.status == "correct"]
    of_all = "" if request.repeats is None else f" of {request.repeats}"
    for turn in Rounds([item.totals for item in able], request.repeats, request.budget, rest=rest):
        steps.timed(turn.share, f"{able[turn.participant].name}, run {turn.number}{of_all}")
        able[turn.participant].measure()
    steps.all_timed()
    for implementation in implementations:
        steps.next(f"{implementation.name}, check of the last run")
        implementation.verify()


def _with_choice(
    rows: Sequence[Measurement], workload: Workload, device: Device
) -> Sequence[Measurement]:
    """Return the rows with a note at the algorithm that `auto` takes, where there are several."""
    if len({row.algorithm for row in rows if row.kind == "opencl"}) < 2:
        return rows
    try:
        taken = workload.operation.choose(workload.problem, device).name
    except InvalidConfig:  # none that is quick enough to be taken without being named
        return rows
    return [
        replace(row, note=", ".join(filter(None, (CHOSEN, row.note))))
        if row.kind == "opencl" and row.algorithm == taken
        else row
        for row in rows
    ]
