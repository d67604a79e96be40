"""Every evaluation on disk at once, so that a tuner that was stopped can go on.

One file of records a task (`opencl_lab.lab.record_file`), which several tuners can share.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from opencl_lab.core.paths import data_dir
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.record_file import append_record, read_records
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.task import TuningTask

__all__ = ["Journal", "journal_file", "read_journal"]

VERSION = 3


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
    algorithm, problem, device = task.algorithm, task.problem, task.device
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    buffers = [(item.name, item.role, item.shape, item.dtype.str) for item in plan.buffers]
    return hashlib.sha256(f"{buffers} {plan.launches}".encode()).hexdigest()[:16]


def journal_file(task: TuningTask) -> Path:
    """Return the file of a task."""
    text = json.dumps(_identity(task), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{task.operation.name}-{task.algorithm_name}")
    return data_dir("journals", f"{name}-{digest}.jsonl")


def read_journal(path: Path) -> dict[Config, Evaluation]:
    """Return the evaluations in a file, where later ones replace earlier ones.

    Lines that are cut or damaged are left out; without a file there are none.
    """
    known = {}
    for record in read_records(path):
        try:
            evaluation = Evaluation.from_dict(record["evaluation"])
            known[evaluation.config] = evaluation
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return known


class Journal:
    """The journal of a task, read once and then written to.

    Parameters
    ----------
    task : TuningTask
    fresh : bool
        Forget what is there.

    Attributes
    ----------
    evaluations : dict
        What the file had, by configuration.
    trouble : str
        Why the last record could not be written; empty if all is well.
    """

    def __init__(self, task: TuningTask, fresh: bool = False):
        self.path = journal_file(task)
        self.trouble = ""
        self._identity = _identity(task)
        if fresh:
            try:
                self.path.unlink(missing_ok=True)
            except OSError as error:
                self.trouble = _sentence(self.path, error)
        self.evaluations = {} if fresh else self._read()

    def _read(self) -> dict[Config, Evaluation]:
        """Return what the file has; one that is about something else is begun anew."""
        try:
            with self.path.open("rb") as file:
                header = next((line for line in file if line.strip()), None)
            if header is None:  # another tuner is about to begin it
                return {}
            if json.loads(header) == self._identity:
                names = set(self._identity["space"])
                stored = read_journal(self.path).items()
                return {config: item for config, item in stored if set(config) == names}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            pass
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = _sentence(self.path, error)
        return {}

    def add(self, evaluation: Evaluation) -> None:
        """Append an evaluation and see it safely to the disk; trouble is only noted."""
        try:
            append_record(self.path, self._identity, {"evaluation": evaluation.as_dict()})
            self.trouble = ""
        except OSError as error:
            self.trouble = _sentence(self.path, error)


def _sentence(path: Path, error: OSError) -> str:
    return f"the journal {path} cannot be written: {error.strerror or error}"
