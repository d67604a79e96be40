"""Interfaces for files that are too large to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from opencl_lab.core.device import Device
from opencl_lab.ops.solver import Problem


@dataclass(frozen=True)
class FileResult:
    """The result of processing a file in parts."""

    seconds: float
    """Duration, with reading and writing but without building kernels."""
    check_seconds: float
    """Duration of the check that followed."""
    stages: Mapping[str, float]
    """Seconds of the stages ``read``, ``work`` and ``write``, which overlap, of ``kernels`` by
    events, and of ``build``, which comes before them."""
    fault: str | None
    """What is wrong with the result, which is deleted then."""


class FileJob(Protocol):
    """A file that is processed in parts."""

    @property
    def problem(self) -> Problem:
        """The problem that is solved."""

    @property
    def nbytes(self) -> int:
        """Size of the array in the file, in bytes."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that solves each part."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its parameters."""

    @property
    def reason(self) -> str:
        """Why the file cannot be processed in any other way."""

    @property
    def parts(self) -> Mapping[str, Any]:
        """The parts, for the JSON document."""

    @property
    def parts_text(self) -> str:
        """The parts in words."""

    def check(self, output: Path) -> None:
        """Check early that the result could be written; raise `InvalidProblem` if not."""

    def run(self, output: Path, report: Callable[[int, int, str], None]) -> FileResult:
        """Compute the result, check it, and replace `output` by it if it is correct.

        `report` is called with the units of work done, their total, and a label of the next one.
        """


class FindJob(Protocol):
    """Returns the job of a file that is processed in parts, or None if it is read as a whole."""

    def __call__(
        self,
        path: Path,
        options: Mapping[str, Any],
        device: Device,
        *,
        algorithm: str = "auto",
        limit: float | None = None,
    ) -> FileJob | None:
        """Raise `InvalidProblem` if it must be processed in parts but cannot."""
