"""Descriptors of studies: sweeps, and questions about their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.lab.engine.request import AlgorithmRun
from opencl_lab.lab.engine.row import Measurement

SCALES = ("small", "full")
Points: TypeAlias = Mapping[str, Sequence[Mapping[str, int]]]
"""The options that vary in a sweep, by scale."""


def sizes(name: str, small: Sequence[int], full: Sequence[int]) -> Points:
    """Return the points of a sweep of one size."""
    return {"small": [{name: n} for n in small], "full": [{name: n} for n in full]}


@dataclass(frozen=True)
class StudyPoint:
    """The options of a problem that vary in a sweep."""

    options: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Its position on the axis: the product of the sizes."""
        return prod(self.options.values())

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


@dataclass(frozen=True)
class StudyPart:
    """One sweep of a study."""

    name: str  # for titles and files; parts for different kinds of devices may share it
    operation: str
    points: Points
    runs: Sequence[AlgorithmRun] = ()
    """Our algorithms; those that the device cannot run are left out, with a note."""
    against: str | Sequence[str] = ()
    """References; missing or slow ones get a row that says so."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that do not vary."""
    workers: tuple[int, ...] = ()
    """Numbers of threads or ranks of references, with a row each; empty: all processors."""
    kinds: tuple[str, ...] = ()  # kinds of devices that it is for; empty: all
    resident: bool = False  # whether it works on device data
    ranks: tuple[int, ...] = ()
    """Numbers of ranks of MPI, with a job for each, instead of `runs` and `against`."""
    grows: tuple[str, float] | None = None
    """The option that grows with the ranks, and by which power of their number."""

    @property
    def axis(self) -> str:
        """What the sizes are: a name, or ``m x n x k`` for their product."""
        return " x ".join(next(points[0] for points in self.points.values() if points))

    @property
    def label(self) -> str:
        """Its name, with the kinds of devices that it is for."""
        return f"{self.name} ({'/'.join(self.kinds)})" if self.kinds else self.name

    def points_at(self, scale: str) -> list[StudyPoint]:
        """Return the problems of a scale."""
        return [StudyPoint(options) for options in self.points[scale]]

    def shared_by(self, ranks: int, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the problem that so many ranks share."""
        name, power = self.grows or ("", 0.0)
        grown = {name: round(options[name] * ranks**power)} if name else {}
        return {**self.options, **options, **grown}


@dataclass
class PartResult:
    """The measured rows of a part by points; `notes` says what was left out."""

    part: StudyPart
    rows: list[tuple[StudyPoint, Sequence[Measurement]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def series(self) -> list[tuple[int, Sequence[Measurement]]]:
        """The rows by size, for plots and crossovers."""
        return sorted(((point.size, rows) for point, rows in self.rows), key=lambda item: item[0])


@dataclass(frozen=True)
class Question:
    """A question about the rows, and the function that answers it in sentences."""

    text: str
    answer: Callable[[Sequence[PartResult]], list[str]]


@dataclass(frozen=True)
class Study:
    """An experiment: its parts, and the questions that it answers."""

    name: str
    shows: str
    parts: Sequence[StudyPart]
    questions: Sequence[Question]

    def parts_on(self, device: Device) -> list[StudyPart]:
        """Return the parts that are for this kind of device."""
        return [part for part in self.parts if not part.kinds or device.kind in part.kinds]
