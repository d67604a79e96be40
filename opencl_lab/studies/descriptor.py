"""What a study is: sweeps, questions, and the figures that a report printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import prod
from types import MappingProxyType
from typing import Any

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.request import AlgorithmRun
from opencl_lab.device import Device

__all__ = [
    "SCALES",
    "Part",
    "PartResult",
    "Point",
    "Printed",
    "Question",
    "Study",
    "printed_figures",
]

SCALES = ("small", "full")


@dataclass(frozen=True)
class Point:
    """Options of one problem of a sweep; `size` is where it lies on the axis."""

    options: Mapping[str, Any]

    @property
    def size(self) -> int:
        """The product of the sizes."""
        return prod(self.options.values())

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


@dataclass(frozen=True)
class Part:
    """One sweep of a study.

    Parameters
    ----------
    name : str
        For titles and files.
    operation : str
    axis : str
        What the sizes are.
    points : mapping of str to sequence of mapping
        By scale the options that vary.
    options : mapping
        Those that do not.
    runs : sequence of AlgorithmRun
        Algorithms of ours; those that the device cannot run are left out, with a note.
    against : sequence of str
        References. What is missing, or would take too long, is a row that says so.
    workers : tuple of int
        How many threads or ranks references have, in a row each; empty: all processors.
    repeats : int
    """

    name: str
    operation: str
    axis: str
    points: Mapping[str, Sequence[Mapping[str, int]]]
    runs: Sequence[AlgorithmRun]
    against: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    workers: tuple[int, ...] = ()
    repeats: int = 5


@dataclass
class PartResult:
    """The measured rows of a part, by points; `notes` says what was left out.

    `status` is the exit status of the first comparison that was not all right.
    """

    part: Part
    rows: list[tuple[Point, Sequence[Measurement]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: int = 0

    @property
    def series(self) -> list[tuple[int, Sequence[Measurement]]]:
        """The rows by sizes, as plots and crossovers take them."""
        return sorted(((point.size, rows) for point, rows in self.rows), key=lambda item: item[0])


@dataclass(frozen=True)
class Question:
    """What is asked of the rows, and what answers it in sentences."""

    text: str
    answer: Callable[[Sequence[PartResult], Device], list[str]]


@dataclass(frozen=True)
class Study:
    """An experiment of a source report."""

    name: str
    shows: str
    parts: Sequence[Part]
    questions: Sequence[Question]


@dataclass(frozen=True)
class Printed:
    """A time that a report printed, and the row of ours that does the same."""

    study: str
    what: str
    hardware: str
    point: Mapping[str, int]
    ours: str
    milliseconds: float


@cache
def printed_figures() -> tuple[Printed, ...]:
    """Return the figures that the reports printed, as far as they are known."""
    text = files("opencl_lab.studies").joinpath("data/printed.json").read_text(encoding="utf-8")
    return tuple(Printed(**figure) for figure in json.loads(text)["figures"])
