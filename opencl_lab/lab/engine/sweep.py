"""Sweeps: the points of an operation over sizes, and the journal of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from opencl_lab._version import __version__
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.records import typed
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import Selection
from opencl_lab.lab.engine.journal import Journal
from opencl_lab.lab.engine.references import References
from opencl_lab.lab.engine.request import PlannedRuns, Point, Request, check_point, point_of
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import ProgressReport, run_point
from opencl_lab.lab.engine.stored import measurement_of
from opencl_lab.lab.engine.timeout_predictor import TimeoutPredictor
from opencl_lab.lab.operation import Operation
from opencl_lab.ops.solver import Problem

ROWS = ("algorithms", "variants", "against", "threads", "resident")
"""Fields of a request that decide which rows there are."""
FILE = "unfinished.jsonl"
"""Name of the journal in the folder of results; a completed sweep removes it."""
VERSION = 2


@dataclass(frozen=True)
class Sweep:
    """One operation over several sizes."""

    chosen: Operation[Any]
    selection: Selection
    sizes: Sequence[int]
    options: Mapping[str, Any]  # options that all sizes share, and the seed
    request: Request

    @property
    def title(self) -> str:
        """The operation, the type, and options that differ from their defaults, without size."""
        usual = self.chosen.with_defaults({})
        given = [
            name.replace("_", "-") + ("" if value is True else f" {value}")
            for name, value in self.options.items()
            if name not in ("dtype", "seed") and value != usual.get(name)
        ]
        dtype = self.options.get("dtype")
        return ", ".join([self.chosen.name + (f" of {dtype}" if dtype else ""), *given])

    def heading(self, size: int) -> str:
        """Return the title of the rows of a size."""
        return f"{self.label(size)}: {self.problem(size).title}"

    def label(self, size: int) -> str:
        """Return a size for sentences, such as ``n=1000``."""
        return f"{self.chosen.size_option}={size}"

    def named(self, size: int) -> dict[str, int]:
        """Return the options that a size sets, which are the first columns of its rows."""
        return {self.chosen.size_option: size}

    def options_at(self, size: int) -> dict[str, Any]:
        """Return the complete options of a size."""
        given = {name: value for name, value in self.options.items() if name != "seed"}
        return self.chosen.with_defaults({**given, **self.named(size)})

    def problem(self, size: int) -> Problem:
        """Return the problem of a size."""
        found: Problem = self.chosen.problem(**self.options_at(size))
        return found

    def point(self, size: int) -> Point:
        """Return the problem of a size with its request."""
        options, seed = self.options_at(size), self.options["seed"]
        return point_of(self.chosen, options, seed, self.request)

    @cached_property
    def planned(self) -> dict[int, PlannedRuns]:
        """The runs at each size, all of them checked before the first one is measured.

        It raises what `check_point` raises, and InvalidProblem if all sizes are the same problem,
        because other options override the size.
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
        """The references, which are the same at all sizes."""
        return self.planned[self.sizes[0]].references

    def measure(
        self, size: int, predictor: TimeoutPredictor, progress: ProgressReport, **asked: Any
    ) -> list[Measurement]:
        """Measure a size, without references that are too slow, and return its rows.

        `asked` are changes of its request.
        """
        point = self.point(size).asking(skip=predictor.skip(size), **asked)
        return run_point(point, device=self.selection.device, progress=progress).measurements

    def timeout_predictor(self, seconds: float | None) -> TimeoutPredictor:
        """Return the predictor of references that are too slow for a size."""
        return TimeoutPredictor(self.chosen, self.references, self.problem, seconds)

    def about(self, sizes: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return the facts that decide which problems and implementations have rows."""
        return {
            "device": self.selection.as_dict(),
            "problem": {"operation": self.chosen.name, "sizes": sizes},
            "options": self.options,
            "request": {name: getattr(self.request, name) for name in ROWS},
        }

    @property
    def identity(self) -> dict[str, Any]:
        """All that the rows of a size depend on, except its problem, as JSON-able values."""
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
        """Return the rows of sizes that were measured before the sweep was stopped."""
        found = {}
        for size, planned in self.planned.items():
            rows = unfinished.take(size, planned.configs)
            if rows is not None:
                # Documents record rates, but not the work itself.
                work = self.problem(size).work
                found[size] = [replace(row, work=work) for row in rows]
        return found


class _Measured(Struct):
    """A record: the results of a size, the kernel parameters, and the date."""

    size: int
    date: str
    configs: list[dict[str, Any]]
    results: list[dict[str, Any]]


class Unfinished(Journal):
    """The journal of a sweep in the folder of its results: a record for each measured size.

    `identity` is that of a `Journal`.
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
        """Whether there are results of this sweep, which was stopped."""
        return bool(self._sizes)

    def take(self, size: int, configs: Sequence[Any]) -> list[Measurement] | None:
        """Return the rows of a size, if they were measured with the same kernel parameters.

        Damaged rows are left out, so that they are measured again.
        """
        found = self._sizes.get(size)
        if found is None or found.configs != json.loads(json.dumps(configs)):
            return None
        try:
            return [measurement_of(row) for row in found.results]
        except (ValueError, OverflowError):
            return None

    def date(self, sizes: Iterable[int]) -> str:
        """Return the latest date at which one of these sizes was measured."""
        return max(self._sizes[size].date for size in sizes)

    def keep(self, size: int, configs: Sequence[Any], rows: Sequence[Measurement]) -> None:
        """Append the results of a size."""
        self.add(
            {
                "size": size,
                "configs": configs,
                "date": datetime.now().astimezone().isoformat(timespec="seconds"),
                "results": [row.as_row() for row in rows],
            }
        )
