"""Running a study: the comparison of every point, by the one runner there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.request import AlgorithmRun, Request, check_comparison
from opencl_lab.lab.engine.row import over_baseline
from opencl_lab.lab.engine.runner import Comparison, StepReport, run_comparison
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.studies.descriptor import Part, PartResult, Point, Study
from opencl_lab.ops.solver import Problem

__all__ = ["run_study", "workers_of_scale"]

REPEATS = 5
POINT_SECONDS = 20.0
"""For the timed rows of a point: where five of each would take longer, there are fewer."""
LEAST_SECONDS = 1e-3
"""Of a budget: a point that has no more than this left is given up at its next step."""


class _TimeIsUp(Exception):
    """Ends the comparison of a point between two of its steps."""


def workers_of_scale(workers: tuple[int, ...], scale: str) -> tuple[int, ...] | None:
    """Return numbers of threads and ranks; at full scale also those up to all processors."""
    if not workers:
        return None
    found = list(workers)
    while scale == "full" and 2 * found[-1] <= default_threads():
        found.append(2 * found[-1])
    return tuple(found)


def run_study(
    study: Study,
    scale: str,
    device: Device,
    *,
    seed: int = 0,
    repeats: int | None = None,
    time_limit: float | None = None,
    baseline: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> Iterator[PartResult]:
    """Run a study; after each point, yield the result of its part so far.

    Parameters
    ----------
    study : Study
    scale : str
    device : Device
        Parts for other kinds of devices are left out.
    seed : int
    repeats : int, optional
        Timed rows of calls of each implementation; default: 5.
    time_limit : float, optional
        Seconds. The parts that are still to come share what is left of them evenly. A part
        whose share is used up ends with the points that it has; the one at work is given up
        before its next step.
    baseline : str, optional
        The row that speed-ups are over at the points where it was measured, instead of ``c:seq``.
    progress : callable, optional

    Raises
    ------
    OclabError
        If the device cannot be used at all; what a single row cannot do is in its status.
    """
    run = _Run(scale, device, seed, repeats)
    parts = study.parts_on(device)
    points = sum(len(part.points[scale]) for part in parts)
    end = None if time_limit is None else monotonic() + time_limit
    done = 0
    for index, part in enumerate(parts):
        result = PartResult(part)
        until = None if end is None else monotonic() + (end - monotonic()) / (len(parts) - index)
        for number, point in enumerate(part.points_at(scale)):
            step = _step(progress, done + number, points, f"{part.name}, {point}")
            left = math.inf if until is None else until - monotonic()
            try:
                comparison = run.compare(result, point, left, _until(until, step))
            except _TimeIsUp:
                break
            rows = comparison.measurements
            if any(row.implementation == baseline and row.ok for row in rows):
                rows = over_baseline(rows, baseline)
            result.rows.append((point, rows))
            result.status = result.status or comparison.exit_status
            yield result
        done += len(part.points[scale])


@dataclass(frozen=True)
class _Run:
    """What all points of a study have in common."""

    scale: str
    device: Device
    seed: int
    repeats: int | None

    def compare(
        self, result: PartResult, point: Point, left: float, progress: StepReport
    ) -> Comparison:
        """Compare all that a part names at one point, in the seconds that are left.

        What was left out is noted in the result of the part.
        """
        part = result.part
        chosen = get_operation(part.operation)
        complete = chosen.with_defaults({**part.options, **point.options})
        problem = chosen.problem(**complete)
        request = self._request(part, left)
        able, notes = _able(chosen, problem, request, part.runs, self.device)
        result.notes += [f"{point}: {note}" for note in notes]
        return run_comparison(
            chosen,
            problem,
            partial(chosen.generate, problem, self.seed, **complete),
            replace(request, runs=able),
            device=self.device,
            progress=progress,
        )

    def _request(self, part: Part, left: float) -> Request:
        """Return what is asked for; rows that somebody wants are limited by `left` only."""
        budget = max(LEAST_SECONDS, min(left, POINT_SECONDS if self.repeats is None else math.inf))
        return Request(
            against=part.against,
            threads=workers_of_scale(part.workers, self.scale),
            repeats=self.repeats or REPEATS,
            budget=budget if math.isfinite(budget) else None,
            resident=part.resident,
            lenient=True,
        )


def _able(
    chosen: Operation[Any],
    problem: Problem,
    request: Request,
    runs: Sequence[AlgorithmRun],
    device: Device,
) -> tuple[list[AlgorithmRun], list[str]]:
    """Return the runs that the device can make, and a note on each of the others."""
    able, notes = [], []
    for run in runs:
        try:
            check_comparison(chosen, problem, replace(request, runs=[run]), device)
        except (InvalidConfig, InvalidProblem) as error:
            notes.append(f"{run[0]} is left out: {error.sentence}")
        else:
            able.append(run)
    return able, notes


def _step(report: StepReport, done: int, points: int, label: str) -> StepReport:
    return lambda step, steps, name: report(
        done * 100 + step * 100 // max(steps, 1), points * 100, f"{label}, {name}"
    )


def _until(end: float | None, report: StepReport) -> StepReport:
    """Return a report that raises `_TimeIsUp` at a step that would begin after the end."""

    def step(done: int, total: int, label: str) -> None:
        if end is not None and monotonic() >= end:
            raise _TimeIsUp
        report(done, total, label)

    return step
