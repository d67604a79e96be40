"""Running a point: all implementations are checked, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.engine.implementations import LONG_MS, Implementation, Workload
from opencl_lab.lab.engine.ours import OpenCL
from opencl_lab.lab.engine.request import Point, Request, check_point, where_of
from opencl_lab.lab.engine.row import Measurement, exit_status
from opencl_lab.lab.engine.speedups import over_baseline
from opencl_lab.lab.measuring.rounds import LEAST_ROUNDS, Rounds, quiesce
from opencl_lab.lab.reference.descriptor import Arrays

CHOSEN = "auto takes it"

ProgressReport: TypeAlias = Callable[[int, int, str], None]
"""Called with the units of work done, their total, and a label of the next one."""


def one_of(progress: ProgressReport, index: int, count: int, label: str) -> ProgressReport:
    """Return a progress report for one of `count` runs that take about the same time."""
    return lambda done, total, what: progress(
        index * 100 + done * 100 // max(total, 1), count * 100, f"{label}, {what}"
    )


@dataclass(frozen=True)
class Comparison:
    """The measured rows of a workload, and the outputs of the first correct algorithm."""

    workload: Workload
    measurements: list[Measurement]
    outputs: Arrays
    errors: list[Exception]
    profiles: dict[str, list[str]]  # by implementation, a line about each launch

    @property
    def exit_status(self) -> int:
        """See `opencl_lab.lab.engine.row.exit_status`."""
        return exit_status(self.measurements)


class _Progress:
    """Reports the progress of a comparison, with a label of what comes next.

    The number of samples is known in advance only if `repeats` is given; otherwise all samples
    together count as the least number of them.
    """

    def __init__(self, rows: int, repeats: int | None, report: ProgressReport):
        self._done = 0
        self._timed = rows * (repeats or LEAST_ROUNDS)
        # Inputs and expected result; for each row a start, a first run and a check.
        self._total = 2 + 3 * rows + self._timed
        self._report = report

    def next(self, label: str) -> None:
        self._report(self._done, self._total, label)
        self._done += 1

    def timed(self, share: float, label: str) -> None:
        """Report a sample; `share` is the fraction of all samples that is done."""
        self._report(self._done + round(share * self._timed), self._total, label)

    def all_timed(self) -> None:
        self._done += self._timed


def run_point(
    point: Point, *, device: Device, progress: ProgressReport = lambda done, total, label: None
) -> Comparison:
    """Measure algorithms and references on one problem, in turns.

    Every implementation first runs once into poisoned outputs and is checked against
    `Operation.expected`. Then samples are taken in turns, as many as the request asks for, or
    until medians are precise or the time is up (see `Rounds`).

    If references run on device data, the algorithms run on device data as well, in rows of
    their own: runs on host data and on device data are never compared with each other.

    Raises
    ------
    InvalidProblem, InvalidConfig
        As `check_point` raises them, before inputs are made.
    ReferenceUnavailable
        If a reference that was named cannot run here.
    """
    chosen, problem, request = point.operation, point.problem, point.request
    planned = check_point(point, device)
    bar = _Progress(len(planned.names), request.repeats, progress)
    bar.next("input")
    inputs = point.make_inputs()
    bar.next("right result on the host")
    workload = Workload(chosen, problem, inputs, chosen.expected(problem, inputs))
    with ExitStack() as stack:
        implementations = planned.implementations(workload, device)
        for implementation in implementations:
            implementation.timed = request.timed
            if request.budget is not None:
                budget_ms = max(LONG_MS, request.budget * 1e3)
                implementation.limit_ms = min(implementation.limit_ms, budget_ms)
            stack.callback(implementation.close)
            bar.next(f"{implementation.name}, start")
            implementation.attempt(implementation.start)
            missing = implementation.error if implementation.status == "unavailable" else None
            if missing is not None and planned.references.by_name:
                raise missing
        _take_turns(implementations, request, bar)
        bar.next("done")
        rows = [item.measurement() for item in implementations]
        ours = [item for item in implementations if isinstance(item, OpenCL)]
        return Comparison(
            workload,
            over_baseline(_with_choice(rows, workload, where_of(point, device)), request.baseline),
            next((item.outputs() for item in ours if item.status == "correct"), {}),
            [item.error for item in ours if item.error is not None],
            {item.name: item.profile() for item in ours},
        )


def _take_turns(every: Sequence[Implementation], request: Request, bar: _Progress) -> None:
    """Check each implementation, time all of them in rounds, and check their last results."""
    for implementation in every:
        bar.next(f"{implementation.name}, first run")
        implementation.check()
    able = [item for item in every if item.status == "correct"]
    of_all = "" if request.repeats is None else f" of {request.repeats}"
    totals = [item.totals for item in able]
    for turn in Rounds(totals, request.repeats, request.budget, quiesce=quiesce):
        bar.timed(turn.share, f"{able[turn.participant].name}, run {turn.number}{of_all}")
        able[turn.participant].measure()
    bar.all_timed()
    for implementation in every:
        bar.next(f"{implementation.name}, check of the last run")
        implementation.verify()


def _with_choice(
    rows: Sequence[Measurement], workload: Workload, device: Device
) -> Sequence[Measurement]:
    """Return the rows with a note at the algorithm that `auto` takes, if there are several."""
    if len({row.algorithm for row in rows if row.kind == "opencl"}) < 2:
        return rows
    try:
        taken = workload.operation.choose(workload.problem, device).name
    except InvalidConfig:  # all are so slow that they have to be named
        return rows
    return [
        replace(row, note=", ".join(filter(None, (CHOSEN, row.note))))
        if row.kind == "opencl" and row.algorithm == taken
        else row
        for row in rows
    ]
