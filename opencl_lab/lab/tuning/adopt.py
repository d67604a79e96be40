"""Adopting configurations of other tuners: they are checked and timed here before they count."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import number_of
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.clblast import from_clblast
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.interchange import Recording, from_kernel_tuner, from_t4
from opencl_lab.lab.tuning.result import TuningProgress
from opencl_lab.lab.tuning.strategies import in_order
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import SearchOptions, run_tuning
from opencl_lab.ops.solver import Problem


@dataclass(frozen=True)
class Adoption:
    """The outcome of trying configurations from a file."""

    task: TuningTask
    evaluations: tuple[Evaluation, ...]
    """The configuration used so far, then those that were tried."""
    best: Evaluation | None
    """The fastest correct one."""
    refused: int
    """How many are not allowed by the algorithm, the problem or the device."""
    stored: bool
    """Whether the best one is new, and was stored in the database."""


def read_recording(text: str) -> Recording:
    """Return the run in a file of any supported format."""
    if '"tune_params_keys"' in text:
        return from_kernel_tuner(text)
    if '"kernel_family"' in text:
        return from_clblast(text)
    if '"schema_version"' in text and '"results"' in text:
        return from_t4(text)
    raise InvalidProblem(
        "this is none of: tuned entries of opencl_lab, a cache file of Kernel Tuner, T4 results, "
        "JSON of CLBlast's tuners"
    )


def task_of(
    recording: Recording,
    device: Device,
    *,
    operation: str | None = None,
    algorithm: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> TuningTask:
    """Return the task of a recording, on the given device.

    Arguments, such as `changes` to fields of the problem, override what the file says.
    """
    name = operation or recording.about.get("operation")
    by = algorithm or recording.about.get("algorithm")
    about = recording.about.get("problem", {})
    if not name or not by:
        raise InvalidProblem(
            "the file does not say which operation and algorithm it is for; give both"
        )
    if not (isinstance(name, str) and isinstance(by, str) and isinstance(about, Mapping)):
        raise InvalidProblem("the operation, algorithm or problem in the file is not understood")
    chosen = get_operation(name)
    chosen.algorithm(by)
    sizes = dict(zip(chosen.problem().sizes, recording.problem_size, strict=False))
    return TuningTask(
        chosen, by, problem_with(chosen, {**sizes, **about, **(changes or {})}), device
    )


def problem_with(operation: Operation[Any], values: Mapping[str, Any]) -> Problem:
    """Return the default problem with these fields, converted to their types."""
    default: Problem = operation.problem()
    converted = {}
    for item in fields(default):
        if item.name in values:
            converted[item.name] = _like(getattr(default, item.name), item.name, values[item.name])
    # Values that a problem derives from its fields are stored, too.
    unknown = sorted(set(values) - set(converted) - set(default.as_dict()))
    if unknown:
        names = ", ".join(item.name for item in fields(default))
        raise InvalidProblem(
            f"problems of {operation.name} have no {', '.join(unknown)}; they have: {names}"
        )
    return replace(default, **converted)


def _like(default: Any, name: str, value: Any) -> Any:
    if default is None and value is None:
        return None
    try:
        if isinstance(default, np.dtype):
            return np.dtype(value)
        if isinstance(default, bool) and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(default, float):
            return number_of(str(value))
        return type(default)(value)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidProblem(f"{name} cannot be {value!r}") from error


def adopt(
    recording: Recording,
    task: TuningTask,
    *,
    limit: int = 10,
    timeout: float | None = None,
    progress: Callable[[TuningProgress], None] | None = None,
) -> Adoption:
    """Try the fastest configurations of a recording, at most `limit`.

    They are checked and timed with the built-in configuration and the one in use. Times in the
    recording only decide the order.
    """
    present = task.algorithm.configure(task.problem, task.device)
    correct = [item for item in recording.evaluations if item.status == "correct"]
    correct.sort(key=lambda item: item.time_ms)
    allowed = [c for item in correct if (c := task.allowed(item.config)) is not None]
    if not allowed:
        raise InvalidProblem(
            f"none of its correct configurations ({len(correct)}) can run as {task.operation.name} "
            f"by {task.algorithm_name} on {task.device.name}"
        )
    chosen = list(dict.fromkeys(config for config in allowed if config != present))[:limit]

    options = SearchOptions(
        lambda points, rng: in_order(chosen), time_limit=math.inf, timeout=timeout
    )
    result = run_tuning(task, options, progress)
    evaluated = {item.config: item for item in (*result.evaluations, *result.finalists)}
    tried = [evaluated[config] for config in (present, *chosen) if config in evaluated]
    best = result.best
    new = best is not None and best.config != present
    return Adoption(task, tuple(tried), best, len(correct) - len(allowed), result.stored and new)
