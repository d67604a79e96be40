"""Configurations from elsewhere, tried here: what another tuner found is a proposal, no result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.doctor.peaks import refusal, stored_peaks
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operation import Operation, Problem, get_operation
from opencl_lab.plan import check_plan
from opencl_lab.space import Config
from opencl_lab.tuning import database
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.interchange import Recording
from opencl_lab.tuning.journal import Journal
from opencl_lab.tuning.runner import Runner
from opencl_lab.tuning.sandbox import Sandbox
from opencl_lab.tuning.task import Task

__all__ = ["Adoption", "adopt", "task_of"]


@dataclass(frozen=True)
class Adoption:
    """What became of configurations from elsewhere.

    Parameters
    ----------
    task : Task
    evaluations : tuple of Evaluation
        The configuration in use before, then those that were tried.
    best : Evaluation or None
        The fastest that is right.
    refused : int
        How many the algorithm, the problem or the device does not allow.
    stored : bool
        Whether the best is a new one, and now in the database.
    """

    task: Task
    evaluations: tuple[Evaluation, ...]
    best: Evaluation | None
    refused: int
    stored: bool


def task_of(
    recording: Recording,
    device: Device,
    *,
    operation: str | None = None,
    algorithm: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Task:
    """Return the task that a recording is about.

    Parameters
    ----------
    recording : Recording
    device : Device
        Where to try its configurations.
    operation, algorithm : str, optional
        In place of what it says itself; needed where it says nothing.
    changes : mapping
        Fields of the problem, likewise.

    Raises
    ------
    InvalidProblem, InvalidConfig
        If it is not known what it is about, or that does not exist here.
    """
    name = operation or recording.about.get("operation")
    chosen_algorithm = algorithm or recording.about.get("algorithm")
    if not name or not chosen_algorithm:
        raise InvalidProblem(
            "the file does not say which operation and algorithm it is about; give both"
        )
    chosen = get_operation(name)
    chosen.algorithm(chosen_algorithm)
    default = chosen.problem()
    values = dict(zip(default.sizes, recording.problem_size, strict=False))
    values.update(recording.about.get("problem", {}))
    values.update(changes or {})
    return Task(chosen, chosen_algorithm, _problem(chosen, default, values), device)


def _problem(operation: Operation[Any], default: Problem, values: Mapping[str, Any]) -> Problem:
    """Return the problem with these fields, of the types that the default problem has."""
    converted = {}
    for item in fields(default):
        if item.name in values:
            converted[item.name] = _like(getattr(default, item.name), item.name, values[item.name])
    unknown = sorted(set(values) - set(converted))
    if unknown:
        names = ", ".join(item.name for item in fields(default))
        raise InvalidProblem(
            f"problems of {operation.name} have no {', '.join(unknown)}; they have: {names}"
        )
    return replace(default, **converted)


def _like(default: Any, name: str, value: Any) -> Any:
    try:
        if isinstance(default, np.dtype):
            return np.dtype(value)
        if isinstance(default, bool) and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        return type(default)(value)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidProblem(f"{name} cannot be {value!r}") from error


def adopt(
    recording: Recording,
    task: Task,
    *,
    limit: int = 10,
    timeout: float | None = None,
    runner: Runner | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> Adoption:
    """Try the fastest configurations of a recording here, and keep the best if it is faster.

    Each is built, checked and timed in the sandbox, as when tuning, beside the
    configuration that is in use now; times of other places count only for the
    order.

    Parameters
    ----------
    recording : Recording
    task : Task
    limit : int
        How many to try.
    timeout : float, optional
        Seconds for each phase, as for `opencl_lab.tuning.tuner.tune`.
    runner : Runner, optional
        Answers in place of the sandbox.
    progress : callable
        Called with done, total and a label.

    Raises
    ------
    InvalidProblem
        If none of the configurations is allowed here.
    """
    present = task.algorithm.configure(task.problem, task.device)
    correct = [item for item in recording.evaluations if item.status == "correct"]
    correct.sort(key=lambda item: item.time_ms)
    allowed = [config for item in correct if (config := _allowed(task, item.config)) is not None]
    if not allowed:
        raise InvalidProblem(
            f"none of its {len(correct)} correct configurations can run as {task.operation.name} "
            f"by {task.algorithm_name} on {task.device.name}"
        )
    configs = list(dict.fromkeys([present, *allowed]))[: limit + 1]
    peaks = stored_peaks(task.device)
    dtype = getattr(task.problem, "dtype", None)
    journal = Journal(task)
    tried: list[Evaluation] = []
    with closing(runner or Sandbox(task, timeout)) as used:
        for index, config in enumerate(configs):
            progress(index, len(configs), f"{task.operation.name} {task.algorithm_name}")
            best_ms = min((item.time_ms for item in tried), default=math.inf)
            evaluation = used.evaluate(config, best_ms, math.inf)
            if evaluation is None:
                continue
            reason = refusal(task.problem.work, dtype, evaluation.time_ms, peaks)
            if reason is not None:
                evaluation = replace(evaluation, status="runtime", reason=reason, times_ms=())
            journal.add(evaluation)
            tried.append(evaluation)
    right = [item for item in tried if item.status == "correct"]
    best = min(right, key=lambda item: item.time_ms, default=None)
    stored = best is not None and best.config != present
    if best is not None and stored:
        database.store(
            task.device,
            task.operation.name,
            task.algorithm,
            task.problem,
            best.config,
            best.time_ms,
        )
    return Adoption(task, tuple(tried), best, len(correct) - len(allowed), stored)


def _allowed(task: Task, config: Config) -> Config | None:
    """Return a configuration completed by the default one, None where something forbids it."""
    algorithm, problem, device = task.algorithm, task.problem, task.device
    default = algorithm.default_config(problem, device)
    try:
        settled = algorithm.space.check(config, default)
        check_plan(algorithm.plan(problem, settled, device), device)
    except (InvalidConfig, InvalidProblem):
        return None
    return settled
