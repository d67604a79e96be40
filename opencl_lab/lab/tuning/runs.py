"""The runs of tuning that the journals hold, for export and for lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import data_dir
from opencl_lab.drivers.discovery import devices
from opencl_lab.lab.engine.journal import read_journal
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.interchange import Recording, values_of
from opencl_lab.lab.tuning.journal import evaluations_of


@dataclass(frozen=True)
class Run:
    """One journal: what was tuned, and what became of each configuration."""

    path: Path
    operation: str
    algorithm: str
    problem: Mapping[str, Any]
    device: str
    parameters: Mapping[str, tuple[Any, ...]]
    evaluations: list[Evaluation]

    @property
    def best(self) -> Evaluation | None:
        """The fastest correct evaluation."""
        correct = [item for item in self.evaluations if item.status == "correct"]
        return min(correct, key=lambda item: item.time_ms, default=None)

    def recording(self) -> Recording:
        """Return the run in the form that other formats are made from."""
        names = {device.key: device.name for device in devices()}
        operation = operations().get(self.operation)
        sizes = operation.problem().sizes if operation else ()
        return Recording(
            names.get(self.device, self.device),
            f"{self.operation}_{self.algorithm}",
            tuple(self.problem[name] for name in sizes if name in self.problem),
            self.parameters or values_of(self.evaluations),
            self.evaluations,
            {
                "operation": self.operation,
                "algorithm": self.algorithm,
                "problem": dict(self.problem),
                "device": self.device,
            },
        )


def read_run(path: Path) -> Run:
    """Return the run in a journal; InvalidProblem if the file is none."""
    head, records = read_journal(path)
    try:
        head["journal"]
        space = {name: tuple(values) for name, values in head["space"].items()}
        about = (head["operation"], head["algorithm"], head["problem"], head["device"])
    except (KeyError, TypeError, AttributeError) as error:
        why = repr(error) if path.exists() else "there is no such file"
        raise InvalidProblem(f"{path} is no journal of the tuner: {why}") from error
    evaluations = list(evaluations_of(records).values())
    # Values between the listed ones may have been tried.
    for name, values in values_of(evaluations).items():
        before = space.get(name, ())
        space[name] = (*before, *(value for value in values if value not in before))
    return Run(path, *about, parameters=space, evaluations=evaluations)


def runs() -> list[Run]:
    """Return all runs, the latest last."""
    found = []
    for path in data_dir("journals").glob("*.jsonl"):
        try:
            run = read_run(path)
            found.append((path.stat().st_mtime_ns, str(path), run))
        except (InvalidProblem, OSError):
            continue
    return [run for _, _, run in sorted(found, key=lambda item: item[:2])]
