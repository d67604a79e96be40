"""Running a study: the comparison of every point, by the one runner there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opencl_lab.comparison.request import AlgorithmRun, Request, check_comparison
from opencl_lab.comparison.runner import StepReport, run_comparison
from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operation import Operation
from opencl_lab.processes import default_threads
from opencl_lab.registry import get_operation
from opencl_lab.solver import Problem
from opencl_lab.studies.descriptor import PartResult, Point, Study

__all__ = ["run_study", "workers_of_scale"]


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
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> Iterator[PartResult]:
    """Run a study; after each point, yield the result of its part so far.

    Raises
    ------
    OclabError
        If the device cannot be used at all; what a single row cannot do is in its status.
    """
    points = sum(len(part.points[scale]) for part in study.parts)
    done = 0
    for part in study.parts:
        result = PartResult(part)
        chosen = get_operation(part.operation)
        request = Request(
            against=list(part.against),
            threads=workers_of_scale(part.workers, scale),
            repeats=repeats or part.repeats,
            lenient=True,
        )
        for given in part.points[scale]:
            point = Point(given)
            complete = chosen.with_defaults({**part.options, **point.options})
            problem = chosen.problem(**complete)
            able, notes = _able(chosen, problem, request, part.runs, device)
            result.notes += [f"{point}: {note}" for note in notes]
            comparison = run_comparison(
                chosen,
                problem,
                partial(chosen.generate, problem, seed, **complete),
                replace(request, runs=able),
                device=device,
                progress=_step(progress, done, points, f"{part.name}, {point}"),
            )
            done += 1
            result.rows.append((point, comparison.measurements))
            result.status = result.status or comparison.exit_status
            yield result


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
