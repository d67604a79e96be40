"""The journals of the tuner: one file for each task, which several tuners can share.

A journal holds a tuning run, which can be exported and listed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.paths import data_dir
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import devices
from opencl_lab.lab.engine.journal import Journal, digest_of, read_journal
from opencl_lab.lab.registry import operations
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
    filtered = {"compile_for": task.compile_for} if task.compile_for else {}
    return {
        **filtered,
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
    space: dict[str, list[Any]]
    """The values of each parameter in the search space."""
    evaluations: list[Evaluation]


def runs() -> list[JournalRun]:
    """Return all runs, the latest last."""
    found = []
    for path in data_dir("journals").glob("*.jsonl"):
        try:
            head, records = read_journal(path)
            evaluations = list(evaluations_of(records).values())
            run = JournalRun(
                path,
                head["operation"],
                head["algorithm"],
                head["problem"],
                head["device"],
                dict(head["space"]),
                evaluations,
            )
            found.append((path.stat().st_mtime_ns, str(path), run))
        except (KeyError, TypeError, OSError):  # not a journal of the tuner
            continue
    return [run for _, _, run in sorted(found, key=lambda item: item[:2])]


def to_t4(run: JournalRun) -> str:
    """Return a run as T4 results 1.0.0, the exchange format of auto-tuners.

    Values that T4 has no field for are in additional ones.
    """
    names = {device.key: device.name for device in devices()}
    operation = operations().get(run.operation)
    sizes = operation.problem().sizes if operation else ()
    about = {
        "operation": run.operation,
        "algorithm": run.algorithm,
        "problem": dict(run.problem),
        "device": run.device,
        "device_name": names.get(run.device, run.device),
        "kernel_name": f"{run.operation}_{run.algorithm}",
        "problem_size": [run.problem[name] for name in sizes if name in run.problem],
        "tune_params": run.space,
    }
    metadata = {"timeunit": "milliseconds", "opencl_lab": about}
    results = [_result(evaluation) for evaluation in run.evaluations]
    content = {"schema_version": "1.0.0", "metadata": metadata, "results": results}
    return json.dumps(content, indent=1, allow_nan=False)


def _result(evaluation: Evaluation) -> dict[str, Any]:
    measurement = {"name": "time", "value": evaluation.time_ms, "unit": "ms"}
    return {
        "timestamp": evaluation.timestamp,
        "configuration": dict(evaluation.config),
        "objectives": ["time"],
        "measurements": [measurement] if evaluation.times_ms else [],
        "times": {
            "compilation_time": evaluation.build_ms,
            "runtimes": list(evaluation.times_ms),
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": evaluation.check_ms,
        },
        "invalidity": evaluation.status,
        "correctness": int(evaluation.status == "correct"),
        **({"oclab_reason": evaluation.reason} if evaluation.reason else {}),
    }
