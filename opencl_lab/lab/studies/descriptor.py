"""What a study is: sweeps, and what is asked of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from opencl_lab.core.device import Device
from opencl_lab.lab.engine.request import AlgorithmRun
from opencl_lab.lab.engine.row import Measurement

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
        For titles and files. Parts for different kinds of devices may share it.
    operation : str
    axis : str
        What the sizes are.
    points : mapping of str to sequence of mapping
        By scale the options that vary.
    runs : sequence of AlgorithmRun
        Algorithms of ours; those that the device cannot run are left out, with a note.
    against : str or sequence of str
        References. What is missing, or would take too long, is a row that says so.
    options : mapping
        Those that do not vary.
    workers : tuple of int
        How many threads or ranks references have, in a row each; empty: all processors.
    kinds : tuple of str
        Kinds of devices that it is for; empty: all.
    resident : bool
        Whether the data are on the device.
    """

    name: str
    operation: str
    axis: str
    points: Mapping[str, Sequence[Mapping[str, int]]]
    runs: Sequence[AlgorithmRun]
    against: str | Sequence[str]
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    workers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    resident: bool = False

    @property
    def label(self) -> str:
        """Its name, with the devices that it is for."""
        return f"{self.name} ({'/'.join(self.kinds)})" if self.kinds else self.name

    def points_at(self, scale: str) -> list[Point]:
        """Return the problems of a scale."""
        return [Point(options) for options in self.points[scale]]


@dataclass
class PartResult:
    """The measured rows of a part, by points; `notes` says what was left out."""

    part: Part
    rows: list[tuple[Point, Sequence[Measurement]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def series(self) -> list[tuple[int, Sequence[Measurement]]]:
        """The rows by sizes, as plots and crossovers take them."""
        return sorted(((point.size, rows) for point, rows in self.rows), key=lambda item: item[0])


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """What answers need to know beside the rows, kept with them to draw answers again.

    Parameters
    ----------
    local_memory : int
        Bytes that a work-group may have.
    own_local_memory : bool
        Whether that is memory of its own, and not a part of the device's.
    cache_bytes : int
        The cache that the driver reports; 0 if it reports none.
    copy_bytes : float, optional
        Bytes that memory copies in a second, as `oclab doctor` has measured it.
    processors : int
        Those that threads and ranks may use.
    """

    local_memory: int = 0
    own_local_memory: bool = False
    cache_bytes: int = 0
    copy_bytes: float | None = None
    processors: int = 1


@dataclass(frozen=True)
class Question:
    """What is asked of the rows, and what answers it in sentences."""

    text: str
    answer: Callable[[Sequence[PartResult], Machine], list[str]]


@dataclass(frozen=True)
class Study:
    """An experiment; `of_a_report` says whether a source report had it, too."""

    name: str
    shows: str
    parts: Sequence[Part]
    questions: Sequence[Question]
    of_a_report: bool = True

    def parts_on(self, device: Device) -> list[Part]:
        """Return the parts that are for this kind of device."""
        return [part for part in self.parts if not part.kinds or device.kind in part.kinds]
