"""Running a study: the comparison of every point, by the one runner there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from opencl_lab.comparison.runner import StepReport, check_comparison, run_comparison
from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.processes import default_threads
from opencl_lab.registry import get_operation
from opencl_lab.studies.descriptor import PartResult, Point, Run, Study

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
    """Run a study, and yield a part's result after each of its points: more of it each time.

    Raises
    ------
    OclabError
        If the device cannot be used at all; what a single row cannot do is said in it.
    """
    points = sum(len(part.points[scale]) for part in study.parts)
    done = 0
    for part in study.parts:
        result = PartResult(part)
        chosen = get_operation(part.operation)
        for given in part.points[scale]:
            point = Point(given)
            complete = chosen.with_defaults({**part.options, **point.options})
            problem = chosen.problem(**complete)
            common: dict[str, Any] = {
                "device": device,
                "against": list(part.against),
                "threads": workers_of_scale(part.workers, scale),
                "repeats": repeats or part.repeats,
                "lenient": True,
            }
            runs: list[Run] = []
            for run in part.runs:
                try:
                    check_comparison(chosen, problem, runs=[run], **common)
                except (InvalidConfig, InvalidProblem) as error:
                    result.notes.append(f"{point}: {run[0]} is left out: {error.sentence}")
                else:
                    runs.append(run)
            comparison = run_comparison(
                chosen,
                problem,
                partial(chosen.generate, problem, seed, **complete),
                runs=runs,
                progress=_step(progress, done, points, f"{part.name}, {point}"),
                **common,
            )
            done += 1
            result.rows.append((point, comparison.measurements))
            result.status = result.status or comparison.exit_status
            yield result


def _step(report: StepReport, done: int, points: int, label: str) -> StepReport:
    return lambda step, steps, name: report(
        done * 100 + step * 100 // max(steps, 1), points * 100, f"{label}, {name}"
    )
