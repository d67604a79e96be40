"""Running a study: the engine measures the points of its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers.discovery import devices
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.explore import Exploration, Limits, Stopped, grid
from opencl_lab.lab.engine.rank_jobs import JobRows, RankJobs
from opencl_lab.lab.engine.request import AlgorithmRun, Request, check_point, point_of
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import ProgressReport, one_of, run_point
from opencl_lab.lab.engine.speedups import over_baseline
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.studies.descriptor import PartResult, Study, StudyPart

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


@dataclass(frozen=True)
class StudyRun:
    """How a study is run; speed-ups are over `baseline`, if it was measured.

    With a number of `repeats` only the time limit ends the samples of a point.
    """

    scale: str
    device: Device
    seed: int = 0
    repeats: int | None = None
    baseline: str | None = None
    asked: str | None = None
    """The device as a user named it, for jobs over ranks."""
    progress: ProgressReport = lambda done, total, label: None
    jobs: JobRows = field(default_factory=dict)
    """Rows of jobs over ranks, which parts may share."""

    def run(
        self, study: Study, time_limit: float | None = None
    ) -> tuple[list[PartResult], Stopped]:
        """Measure a study; return the parts with measured points, and why it ended.

        Remaining parts share the remaining time evenly, in seconds. A part whose share is used up
        ends with the points that it has, and its current point is given up before the next run.
        An `OclabError` means that the device cannot be used; failures of single rows are in their
        status.
        """
        parts = study.parts_on(self.device)
        counts = [len(part.points[self.scale]) for part in parts]
        whole = Limits(time_limit=time_limit)
        found: list[PartResult] = []
        ended: Stopped = "complete"
        for index, part in enumerate(parts):
            share = None if time_limit is None else whole.left / (len(parts) - index)
            result = PartResult(part)
            before = sum(counts[:index])
            stopped = self._measure(result, Limits(None, share), before, sum(counts))
            found += [result] * bool(result.rows)
            if stopped != "complete":
                ended = stopped
            if stopped == "interrupted":
                break
        return found, ended

    def _measure(self, result: PartResult, limits: Limits, before: int, count: int) -> Stopped:
        """Measure the points of a part into its result; `before` of `count` are done."""
        part = result.part
        places = part.points_at(self.scale)

        def measure(number: int) -> Sequence[Measurement]:
            label = f"{part.name}, {places[number]}"
            report = one_of(self.progress, before + number, count, label)

            def step(done: int, total: int, label: str) -> None:
                limits.check_time()
                report(done, total, label)

            options = places[number].options
            if part.ranks:
                return self._over_ranks(part, options).rows(step)
            request = self._request(part, limits.left)
            chosen = get_operation(part.operation)
            point = point_of(chosen, {**part.options, **options}, self.seed, request)
            runs: list[AlgorithmRun] = []
            for run in part.runs:
                try:
                    check_point(point.asking(runs=[run]), self.device)
                    runs.append(run)
                except (InvalidConfig, InvalidProblem) as error:
                    note = f"{places[number]}: {run[0]} is left out: {error.sentence}"
                    result.notes.append(note)
            asked = point.asking(runs=runs)
            return run_point(asked, device=self.device, progress=step).measurements

        def told(number: int, rows: Sequence[Measurement]) -> None:
            if any(row.implementation == self.baseline and row.ok for row in rows):
                rows = over_baseline(rows, self.baseline)
            result.rows.append((places[number], rows))

        return Exploration(measure, told=told, limits=limits).run(grid(range(len(places))))

    def _request(self, part: StudyPart, seconds: float) -> Request:
        """Return the request of a point, for which so many seconds are left."""
        most = POINT_SECONDS if self.repeats is None else math.inf
        budget = max(LEAST_SECONDS, min(seconds, most))
        return Request(
            against=part.against,
            threads=workers_of_scale(part.workers, self.scale),
            repeats=self.repeats or REPEATS,
            budget=budget if math.isfinite(budget) else None,
            resident=part.resident,
            lenient=True,
        )

    def _over_ranks(self, part: StudyPart, options: Mapping[str, int]) -> RankJobs:
        """Return the jobs of a point."""
        chosen = get_operation(part.operation)
        ranks = ranks_of_scale(part.ranks, self.scale, self.device)

        def on(count: int) -> dict[str, Any]:
            return chosen.with_defaults(part.shared_by(count, options))

        repeats = self.repeats or REPEATS
        return RankJobs(chosen, ranks, on, self.seed, repeats, self.asked, known=self.jobs)
