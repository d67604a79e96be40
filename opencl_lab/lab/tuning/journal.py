"""The journals of the tuner: one file for each task, which several tuners can share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from opencl_lab.core.paths import data_dir
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.engine.journal import Journal, digest_of
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.task import TuningTask

VERSION = 3


def journal_of(task: TuningTask, fresh: bool = False) -> Journal:
    """Return the journal of a task, which forgets what is there if it is to be `fresh`."""
    identity = _identity(task)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{task.operation.name}-{task.algorithm_name}")
    path = data_dir("journals", f"{name}-{digest_of(identity)}.jsonl")
    return Journal(path, identity, fresh)


def evaluations_of(records: Iterable[Mapping[str, Any]]) -> dict[Config, Evaluation]:
    """Return the evaluations in the records of a journal, where later ones replace earlier ones.

    Damaged ones are left out.
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
    """Return all that an evaluation depends on; a change of any of it begins a new journal."""
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
    """Return a digest of what is launched without tuning; constants count by their shapes."""
    plan = task.algorithm.plan(task.problem, task.built_in, task.device)
    buffers = [(item.name, item.role, item.shape, item.dtype.str) for item in plan.buffers]
    return hashlib.sha256(f"{buffers} {plan.launches}".encode()).hexdigest()[:16]
