"""The journals of the tuner: one file for each task, which several tuners can share.

A journal holds a tuning run, which can be exported and listed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import data_dir
from opencl_lab.core.space import Config, Value
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.engine.journal import Journal, digest_of, read_journal
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.task import TuningTask

VERSION = 3


def journal_of(task: TuningTask, fresh: bool = False) -> Journal:
    """Return the journal of a task; if `fresh`, its records are dropped."""
    identity = _identity(task)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{task.operation.name}-{task.algorithm_name}")
    path = data_dir("journals", f"{name}-{digest_of(identity)}.jsonl")
    return Journal(path, identity, fresh)


def evaluations_of(records: Iterable[Mapping[str, Any]]) -> dict[Config, Evaluation]:
    """Return the evaluations in the records of a journal; later ones replace earlier ones.

    Damaged records are left out.
    """
    known = {}
    for record in records:
        try:
            evaluation = Evaluation.from_dict(record["evaluation"])
            known[evaluation.config] = evaluation
        except (ValueError, KeyError):
            continue
    return known


def _identity(task: TuningTask) -> dict[str, Any]:
    """Return all that an evaluation depends on; if any of it changes, a new journal begins."""
    space = task.algorithm.space
    return {
        "journal": VERSION,
        "operation": task.operation.name,
        "algorithm": task.algorithm_name,
        "problem": task.problem.as_dict(),
        "data": dict(task.data),
        "device": task.device.key,
        "kernel": kernel_digest(task.algorithm.templates),
        "plan": _plan_digest(task),
        "space": {parameter.name: list(parameter.values) for parameter in space.parameters},
        "constraints": [constraint.reason for constraint in space.constraints],
        "checks": [problem.as_dict() for problem in task.check_problems],
    }


def _plan_digest(task: TuningTask) -> str:
    """Return a digest of the built-in plan, with shapes of constants instead of their values."""
    plan = task.algorithm.plan(task.problem, task.built_in, task.device)
    buffers = [(item.name, item.role, item.shape, item.dtype.str) for item in plan.buffers]
    return hashlib.sha256(f"{buffers} {plan.launches}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class JournalRun:
    """The content of one journal: the task, and all evaluations."""

    path: Path
    operation: str
    algorithm: str
    problem: Mapping[str, Any]
    device: str
    parameters: Mapping[str, tuple[Any, ...]]
    """The values of each parameter: those of the space, and others that were tried."""
    evaluations: list[Evaluation]

    @property
    def best(self) -> Evaluation | None:
        """The fastest correct evaluation."""
        correct = [item for item in self.evaluations if item.status == "correct"]
        return min(correct, key=lambda item: item.time_ms, default=None)


def read_run(path: Path) -> JournalRun:
    """Return the run in a journal; InvalidProblem if the file is not a journal."""
    head, records = read_journal(path)
    try:
        head["journal"]
        space = {name: tuple(values) for name, values in head["space"].items()}
        about = (head["operation"], head["algorithm"], head["problem"], head["device"])
    except (KeyError, TypeError, AttributeError) as error:
        why = repr(error) if path.exists() else "there is no such file"
        raise InvalidProblem(f"{path} is not a journal of the tuner: {why}") from error
    evaluations = list(evaluations_of(records).values())
    return JournalRun(path, *about, _values_of(evaluations, space), evaluations)


def _values_of(
    evaluations: list[Evaluation], listed: Mapping[str, tuple[Value, ...]]
) -> dict[str, tuple[Value, ...]]:
    """Return the values of each parameter: the `listed` ones, then others that were tried."""
    found = {name: list(values) for name, values in listed.items()}
    for evaluation in evaluations:
        for name, value in evaluation.config.items():
            tried = found.setdefault(name, [])
            if (type(value), value) not in [(type(old), old) for old in tried]:
                tried.append(value)
    return {name: tuple(values) for name, values in found.items()}


def runs() -> list[JournalRun]:
    """Return all runs, the latest last."""
    found = []
    for path in data_dir("journals").glob("*.jsonl"):
        try:
            run = read_run(path)
            found.append((path.stat().st_mtime_ns, str(path), run))
        except (InvalidProblem, OSError):
            continue
    return [run for _, _, run in sorted(found, key=lambda item: item[:2])]
