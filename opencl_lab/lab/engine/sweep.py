"""A sweep: the points of one operation over sizes or shapes, and the journal of those measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from opencl_lab._version import __version__
from opencl_lab.core.errors import InvalidProblem, OclabError
from opencl_lab.core.records import typed
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import Selection
from opencl_lab.lab.engine.journal import Journal
from opencl_lab.lab.engine.patience import Patience
from opencl_lab.lab.engine.references import References, names_of
from opencl_lab.lab.engine.request import Point, Request, Schedule, check_point, point_of
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import StepReport, run_point
from opencl_lab.lab.engine.stored import measurement_of
from opencl_lab.lab.operation import Operation
from opencl_lab.ops.solver import AUTO, Problem

ALONE: dict[str, Any] = {"runs": (), "repeats": 1, "lenient": True, "baseline": None}
"""What a request says where one reference is tried."""
ROWS = ("algorithms", "variants", "against", "threads", "resident")
"""What a request says of which rows there are."""
FILE = "unfinished.jsonl"
"""In the folder of the results; a sweep that ends removes it."""
VERSION = 2


@dataclass(frozen=True)
class Sweep:
    """One operation over several sizes."""

    chosen: Operation[Any]
    selection: Selection
    sizes: Sequence[int]
    options: Mapping[str, Any]  # those that all sizes share, and the seed
    request: Request

    @property
    def title(self) -> str:
        """The operation, the type, and the options that are not as by default; no size."""
        usual = self.chosen.with_defaults({})
        given = [
            name.replace("_", "-") + ("" if value is True else f" {value}")
            for name, value in self.options.items()
            if name not in ("dtype", "seed") and value != usual.get(name)
        ]
        dtype = self.options.get("dtype")
        return ", ".join([self.chosen.name + (f" of {dtype}" if dtype else ""), *given])

    def heading(self, size: int) -> str:
        """Return what stands above the rows of a size."""
        return f"{self.label(size)}: {self.problem(size).title}"

    def label(self, size: int) -> str:
        """Return what sentences call a size, such as ``n=1000``."""
        return f"{self.chosen.size_option}={size}"

    def named(self, size: int) -> dict[str, int]:
        """Return what a size stands for, by the names of options: the first columns of its rows."""
        return {self.chosen.size_option: size}

    def _options_at(self, size: int) -> dict[str, Any]:
        given = {name: value for name, value in self.options.items() if name != "seed"}
        return self.chosen.with_defaults({**given, **self.named(size)})

    def problem(self, size: int) -> Problem:
        """Return the problem of a size."""
        found: Problem = self.chosen.problem(**self._options_at(size))
        return found

    def request_at(self, size: int) -> Request:
        """Return what is run at a size."""
        return self.request

    def point(self, size: int) -> Point:
        """Return the problem of a size with what is run there."""
        options, seed = self._options_at(size), self.options["seed"]
        return point_of(self.chosen, options, seed, self.request_at(size))

    @cached_property
    def schedules(self) -> dict[int, Schedule]:
        """What runs at each size, all of it checked before the first one costs time.

        It raises what `check_point` raises, and InvalidProblem where all sizes are one problem,
        as options say all that a size says.
        """
        points = {size: self.point(size) for size in self.sizes}
        found = {size: check_point(at, self.selection.device) for size, at in points.items()}
        first = points[self.sizes[0]].problem
        if len(points) > 1 and all(point.problem == first for point in points.values()):
            raise InvalidProblem(
                f"{self.chosen.size_option} changes nothing beside the other options, so all sizes "
                f"would be the same problem: {first.title}"
            )
        return found

    @property
    def references(self) -> References:
        """What is measured beside ours, at every size."""
        return self.schedules[self.sizes[0]].references

    def measure(
        self, size: int, patience: Patience, progress: StepReport, **asked: Any
    ) -> list[Measurement]:
        """Run a size, without the references that nobody waits for, and return its rows.

        `asked` are other values in its request.
        """
        point = self.point(size).asking(skip=patience.skip(size), **asked)
        return run_point(point, device=self.selection.device, progress=progress).measurements

    def patience(self, seconds: float | None) -> Patience:
        """Return what knows which references are too slow for the next size."""

        def trial(size: int, reference: str) -> Sequence[Measurement]:
            point = self.point(size).asking(against=[reference], **ALONE)
            try:
                return run_point(point, device=self.selection.device).measurements
            except OclabError:  # what is wrong is said where it is measured
                return ()

        return Patience(self.chosen, self.references, self.problem, trial, seconds)

    def about(self, sizes: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return what decides of which problems and implementations there are rows."""
        return {
            "device": self.selection.as_dict(),
            "problem": {"operation": self.chosen.name, "sizes": sizes},
            "options": self.options,
            "request": {name: getattr(self.request, name) for name in ROWS},
        }

    @property
    def identity(self) -> dict[str, Any]:
        """All that the rows of a size depend on beside its own problem, in JSON-able values."""
        asked = {item.name: getattr(self.request, item.name) for item in fields(self.request)}
        kind = self.selection.device.kind
        templates = {name for item in self.chosen.algorithms for name in item.on(kind).templates}
        return {
            "operation": self.chosen.name,
            "options": dict(self.options),
            **asked,
            "references": [item.name for item in self.references.every],
            "device": self.selection.device.key,
            "version": __version__,
            "kernels": kernel_digest(tuple(sorted(templates))),
        }

    def taken_over(self, unfinished: Unfinished) -> dict[int, list[Measurement]]:
        """Return the rows of the sizes that this sweep has measured before it was stopped."""
        found = {}
        for size, schedule in self.schedules.items():
            rows = unfinished.take(size, schedule.configs)
            if rows is not None:
                # Documents have the rates of work and not what it is made of.
                work = self.problem(size).work
                found[size] = [replace(row, work=work) for row in rows]
        return found


Shape: TypeAlias = tuple[int, ...]


def shape_text(shape: Shape) -> str:
    """Return a shape as tables have it, such as ``4096 x 8 x 4096``."""
    return " x ".join(map(str, shape))


@dataclass(frozen=True)
class ShapeSweep(Sweep):
    """A sweep whose sizes are places in a list of shapes."""

    shapes: Sequence[Shape] = ()

    def label(self, size: int) -> str:
        """Return what sentences call a shape."""
        return shape_text(self.shapes[size])

    def named(self, size: int) -> dict[str, int]:
        """Return a shape by the names of its options."""
        return dict(zip(self.chosen.shape_options, self.shapes[size], strict=True))

    def request_at(self, size: int) -> Request:
        """Return what is run: what ``auto`` takes, and those named that take the shape."""
        problem, device = self.problem(size), self.selection.device
        wanted = names_of(self.request.algorithms)
        if wanted == ["all"]:
            wanted = list(self.chosen.solver.promising(problem, device))
        able = [name for name in wanted if name != AUTO and self._takes(name, problem)]
        return replace(self.request, algorithms=[AUTO, *able])

    def _takes(self, name: str, problem: Any) -> bool:
        """Return whether an algorithm takes a shape; one that chooses takes whatever is there."""
        if name in self.chosen.choices:
            return True
        return self.chosen.algorithm(name).supports(problem, self.selection.device) is None

    @property
    def identity(self) -> dict[str, Any]:
        """All that the rows of a shape depend on beside its own problem."""
        return {**super().identity, "shapes": [list(shape) for shape in self.shapes]}


class _Measured(Struct):
    """A record: what was measured of a size, with which kernel parameters, and when."""

    size: int
    date: str
    configs: list[dict[str, Any]]
    results: list[dict[str, Any]]


class Unfinished(Journal):
    """The journal of a sweep in the folder of its results: a record for each size measured.

    The rows of every size depend on the `identity`; see `Journal`.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], fresh: bool = False):
        super().__init__(folder / FILE, {"sweep": VERSION, **identity}, fresh)
        self._sizes: dict[int, _Measured] = {}
        for record in self.records:
            with suppress(ValueError):
                found = typed(_Measured, record)
                self._sizes[found.size] = found

    @property
    def goes_on(self) -> bool:
        """Whether the latest results of the folder are those of this sweep, which was stopped."""
        return bool(self._sizes)

    def take(self, size: int, configs: Sequence[Any]) -> list[Measurement] | None:
        """Return what was measured of a size, if that was with the same kernel parameters.

        Rows of a file that is damaged are measured again.
        """
        found = self._sizes.get(size)
        if found is None or found.configs != json.loads(json.dumps(configs)):
            return None
        try:
            return [measurement_of(row) for row in found.results]
        except (ValueError, OverflowError):
            return None

    def date(self, sizes: Iterable[int]) -> str:
        """Return when the last of these sizes was measured."""
        return max(self._sizes[size].date for size in sizes)

    def keep(self, size: int, configs: Sequence[Any], rows: Sequence[Measurement]) -> None:
        """Append what was measured of a size."""
        self.add(
            {
                "size": size,
                "configs": configs,
                "date": datetime.now().astimezone().isoformat(timespec="seconds"),
                "results": [row.as_row() for row in rows],
            }
        )
