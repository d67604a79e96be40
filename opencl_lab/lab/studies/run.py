"""Running a study: the engine measures the points of its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers.discovery import devices
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.explore import Exploration, Limits, Stopped, grid
from opencl_lab.lab.engine.rank_jobs import JobRows, RankJobs
from opencl_lab.lab.engine.request import AlgorithmRun, Point, Request, check_point, point_of
from opencl_lab.lab.engine.row import Measurement, over_baseline
from opencl_lab.lab.engine.runner import ProgressReport, one_of, run_point
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.studies.descriptor import PartResult, Study

REPEATS = 5
POINT_SECONDS = 20.0
"""Time limit of the samples of a point: if five of each would take longer, there are fewer."""
LEAST_SECONDS = 1e-3
"""A point with no more time than this is given up before its next run."""


def workers_of_scale(workers: tuple[int, ...], scale: str) -> tuple[int, ...] | None:
    """Return numbers of threads and ranks; at full scale also those up to all processors."""
    if not workers:
        return None
    found = list(workers)
    while scale == "full" and 2 * found[-1] <= default_threads():
        found.append(2 * found[-1])
    return tuple(found)


def ranks_of_scale(ranks: tuple[int, ...], scale: str, device: Device) -> tuple[int, ...]:
    """Return numbers of ranks; at full scale up to all devices of a kind, or processors."""
    if scale != "full":
        return ranks
    alike = [one for one in devices() if (one.kind, one.platform) == (device.kind, device.platform)]
    most = default_threads() if device.kind == "cpu" else len(alike)
    return tuple(n for n in (2**i for i in range(most.bit_length())) if n <= most)


def run_study(
    study: Study,
    scale: str,
    device: Device,
    *,
    seed: int = 0,
    repeats: int | None = None,
    time_limit: float | None = None,
    baseline: str | None = None,
    asked: str | None = None,
    progress: ProgressReport = lambda done, total, label: None,
) -> tuple[list[PartResult], Stopped]:
    """Run a study; return the parts with measured points, and why it ended.

    `time_limit` is in seconds; remaining parts share the remaining time evenly. A part whose share
    is used up ends with the points that it has, and its current point is given up before the next
    run. Speed-ups are over `baseline`, if it was measured, instead of ``c:seq``. Jobs over ranks
    get `asked`, the device as a user named it. An `OclabError` means that the device cannot be
    used; failures of single rows are in their status.
    """
    parts = study.parts_on(device)
    counts = [len(part.points[scale]) for part in parts]
    whole = Limits(time_limit=time_limit)
    found: list[PartResult] = []
    ended: Stopped = "complete"
    jobs: JobRows = {}
    for index, part in enumerate(parts):
        share = None if time_limit is None else whole.left / (len(parts) - index)
        run = _PartRun(
            PartResult(part), scale, device, seed, repeats, baseline, Limits(None, share), asked
        )
        stopped = run.explore(progress, sum(counts[:index]), sum(counts), jobs)
        found += [run.result] * bool(run.result.rows)
        if stopped != "complete":
            ended = stopped
        if stopped == "interrupted":
            break
    return found, ended


@dataclass(frozen=True)
class _PartRun:
    """A part of a study, and its time limit."""

    result: PartResult
    scale: str
    device: Device
    seed: int
    repeats: int | None
    baseline: str | None
    limits: Limits
    asked: str | None = None  # the device as a user named it, for jobs over ranks

    def explore(self, progress: ProgressReport, before: int, points: int, jobs: JobRows) -> Stopped:
        """Measure the points of the part into its result; `before` is for the progress.

        `jobs` are rows that other parts may share.
        """
        part, rows = self.result.part, self.result.rows
        places = part.points_at(self.scale)

        def measure(number: int) -> Sequence[Measurement]:
            label = f"{part.name}, {places[number]}"
            report = one_of(progress, before + number, points, label)

            def step(done: int, total: int, label: str) -> None:
                self.limits.check_time()
                report(done, total, label)

            if part.ranks:
                return self._jobs(places[number].options, jobs).rows(step)
            point, notes = self._point(places[number].options)
            self.result.notes.extend(f"{places[number]}: {note}" for note in notes)
            return run_point(point, device=self.device, progress=step).measurements

        def told(number: int, found: Sequence[Measurement]) -> None:
            if any(row.implementation == self.baseline and row.ok for row in found):
                found = over_baseline(found, self.baseline)
            rows.append((places[number], found))

        return Exploration(measure, told=told, limits=self.limits).run(grid(range(len(places))))

    def _jobs(self, options: Mapping[str, int], known: JobRows) -> RankJobs:
        """Return the jobs of a point."""
        part, chosen = self.result.part, get_operation(self.result.part.operation)

        def on(ranks: int) -> dict[str, Any]:
            return chosen.with_defaults({**part.options, **part.grown(options, ranks)})

        counts = ranks_of_scale(part.ranks, self.scale, self.device)
        repeats = self.repeats or REPEATS
        return RankJobs(chosen, counts, on, self.seed, repeats, self.asked, known=known)

    def _point(self, options: Mapping[str, int]) -> tuple[Point, list[str]]:
        """Return the point to run, and notes on what is left out there."""
        part = self.result.part
        every = {**part.options, **options}
        point = point_of(get_operation(part.operation), every, self.seed, self._request())
        able, notes = _able(point, part.runs, self.device)
        return point.asking(runs=able), notes

    def _request(self) -> Request:
        """Return the request; with a given number of samples only the remaining time limits it."""
        part, most = self.result.part, POINT_SECONDS if self.repeats is None else math.inf
        budget = max(LEAST_SECONDS, min(self.limits.left, most))
        return Request(
            against=part.against,
            threads=workers_of_scale(part.workers, self.scale),
            repeats=self.repeats or REPEATS,
            budget=budget if math.isfinite(budget) else None,
            resident=part.resident,
            lenient=True,
        )


def _able(
    point: Point, runs: Sequence[AlgorithmRun], device: Device
) -> tuple[list[AlgorithmRun], list[str]]:
    """Return the runs that the device supports, and a note on each of the others."""
    able, notes = [], []
    for run in runs:
        try:
            check_point(point.asking(runs=[run]), device)
        except (InvalidConfig, InvalidProblem) as error:
            notes.append(f"{run[0]} is left out: {error.sentence}")
        else:
            able.append(run)
    return able, notes
