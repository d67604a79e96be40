"""What an operation does with a file that is too large to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from opencl_lab.core.device import Device
from opencl_lab.ops.solver import Problem


@dataclass(frozen=True)
class FileResult:
    """What became of a file."""

    seconds: float
    """What it took, with reading and writing but without building kernels."""
    check_seconds: float
    """What the check that followed took."""
    stages: Mapping[str, float]
    """Seconds of each stage, which overlap (``read``, ``work``, ``write``), of ``kernels`` by their
    events, and of ``build`` before all of them."""
    fault: str | None
    """What is wrong with the result; it was not kept then."""


class FileJob(Protocol):
    """A file that is gone through in parts."""

    @property
    def problem(self) -> Problem:
        """What is solved."""

    @property
    def nbytes(self) -> int:
        """Bytes of the array in the file."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that solves each part."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its parameters."""

    @property
    def reason(self) -> str:
        """Why nothing else can be done with the file."""

    @property
    def parts(self) -> Mapping[str, Any]:
        """How it is parted, for the JSON document."""

    @property
    def parts_text(self) -> str:
        """The same in words."""

    def check(self, output: Path) -> None:
        """Check early that the result could be written; raise `InvalidProblem` if not."""

    def run(self, output: Path, report: Callable[[int, int, str], None]) -> FileResult:
        """Make the result, check it, and let it take the place of `output` if it is right.

        `report` is called with steps done, steps in all, and what comes next.
        """


class FindJob(Protocol):
    """Returns how a file is gone through in parts, or None if it is read as a whole."""

    def __call__(
        self,
        path: Path,
        options: Mapping[str, Any],
        device: Device,
        *,
        algorithm: str = "auto",
        limit: float | None = None,
    ) -> FileJob | None:
        """Raise `InvalidProblem` if it must be parted and cannot."""
