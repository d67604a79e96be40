"""`oclab bench OPERATION --shapes`: where shape makes an operation slow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.options import RunOptions, used_options
from opencl_lab.lab.cli.results import print_and_write, write_json, write_results, write_text
from opencl_lab.lab.cli.values import whole_numbers
from opencl_lab.lab.engine.references import names_of
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.engine.row import Side
from opencl_lab.lab.engine.sweep import Sweep, SweepPoint
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.lines import Series
from opencl_lab.lab.presentation.shapes import (
    Shape,
    ShapeResult,
    judged,
    shape_text,
    summary,
    summary_lines,
    table,
)
from opencl_lab.lab.presentation.table import table_text, write_csv
from opencl_lab.lab.reference.descriptor import DeviceReference, HostReference
from opencl_lab.ops.solver import AUTO

__all__ = ["SHAPE_RESULTS", "ShapeOutputs", "shape_sweep_of", "shapes_of"]

SHAPE_RESULTS = ("shapes.csv", "shapes.json", "shapes.txt")
STANDARD = "standard"
SECONDS = 1.0
"""Time limit of a shape where none is given: many shapes are measured, each less well."""
UNLIMITED = math.inf
"""Seconds that a call may take: estimates go by size, and shapes have no order."""


def shapes_of(chosen: Operation[Any], wanted: str) -> list[Shape]:
    """Return the operation's own shapes, or those of a file: a line of numbers for each.

    Raises
    ------
    InvalidProblem
        If the file cannot be read, or has a line of something else.
    """
    if wanted == STANDARD:
        return list(chosen.shapes)
    try:
        lines = Path(wanted).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblem(
            f"cannot read shapes from {wanted}: {getattr(error, 'strerror', None) or error}"
        ) from error
    found = [_shape(chosen, line) for line in lines if line.strip() and line.strip()[0] != "#"]
    if not found:
        raise InvalidProblem(f"there are no shapes in {wanted}")
    return list(dict.fromkeys(found))


def _shape(chosen: Operation[Any], line: str) -> Shape:
    names = ",".join(chosen.shape_options)
    try:
        shape = tuple(whole_numbers(line))
    except InvalidProblem:
        shape = ()
    if len(shape) != len(chosen.shape_options):
        raise InvalidProblem(f"a line of a file of shapes is {names}, not {line.strip()!r}")
    return shape


@dataclass(frozen=True)
class ShapeSweep(Sweep):
    """A sweep whose sizes are places in a list of shapes."""

    shapes: Sequence[Shape] = ()

    def options_of(self, size: int) -> dict[str, Any]:
        """Return all options of the problem of a shape."""
        given = {name: value for name, value in self.options.items() if name != "seed"}
        shape = dict(zip(self.chosen.shape_options, self.shapes[size], strict=True))
        return self.chosen.with_defaults({**given, **shape})

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

    def label(self, point: SweepPoint) -> str:
        """Return what sentences call a shape."""
        return shape_text(self.shapes[point.size])


def shape_sweep_of(
    chosen: Operation[Any], shapes: Sequence[Shape], options: Mapping[str, Any], run: RunOptions
) -> ShapeSweep:
    """Return the problems of all shapes, checked before the first one costs time.

    Beside what is asked for, other libraries take part, and no references in C.
    """
    used = {**used_options(chosen, options), "seed": run.seed}
    for name in (chosen.size_option, *chosen.shape_options):
        used.pop(name, None)
    request = run.request()
    if request.against is None and not request.resident:
        names = [
            item.name
            for item in chosen.references
            if isinstance(item, (HostReference, DeviceReference)) and item.unavailable() is None
        ]
        request = replace(request, against=names or "none", lenient=True)
    if request.budget is None and request.repeats is None:
        request = replace(request, budget=SECONDS)
    points: list[SweepPoint] = []
    sweep = ShapeSweep(chosen, settings().begin(), points, used, request, shapes)
    points += map(sweep.point, range(len(shapes)))
    return sweep


@dataclass(frozen=True)
class ShapeOutputs:
    """The rows of all shapes, or of the first ones, and where they go."""

    sweep: ShapeSweep
    series: Series
    folder: Path
    taken: Sequence[int] = ()

    @cached_property
    def results(self) -> list[ShapeResult]:
        """What the rows of each shape say."""
        side: Side = "device" if self.sweep.request.resident else "host"
        device = self.sweep.selection.device
        return [
            judged(
                self.sweep.shapes[place],
                rows,
                self.sweep.chosen.choose(self.sweep.problem(place), device).name,
                side,
                self.sweep.request.baseline,
            )
            for place, rows in self.series
        ]

    def print_and_write(self) -> int:
        """Print the table and its summary, then write the files; return their exit status."""
        content = self._document()
        return print_and_write(content, self._print, partial(self._write, content))

    def _print(self) -> None:
        settings().say_device()
        settings().show(self._table())
        for line in summary_lines(self.results, self.sweep.request.baseline):
            settings().say(line)

    def _table(self) -> Any:
        chosen, baseline = self.sweep.chosen, self.sweep.request.baseline
        title = f"{self.sweep.title}: shapes, the worst last"
        return table(self.results, chosen.shape_options, title, baseline)

    def _named(self, place: int) -> dict[str, int]:
        return dict(zip(self.sweep.chosen.shape_options, self.sweep.shapes[place], strict=True))

    def _document(self) -> dict[str, Any]:
        return self.sweep.document(
            [{**self._named(place), **row.as_row()} for place, rows in self.series for row in rows],
            sizes=[list(self.sweep.shapes[place]) for place, _ in self.series],
            complete=len(self.series) == len(self.sweep.points),
            shapes=[result.as_dict() for result in self.results],
            summary=summary(self.results),
        )

    def _write(self, content: dict[str, Any]) -> int:
        options, names = self.sweep.options, self.sweep.chosen.shape_options
        flat = (
            ({**self._named(place), **options}, row) for place, rows in self.series for row in rows
        )
        device = f"on {self.sweep.selection.device}"
        rows, data, text = SHAPE_RESULTS
        return write_results(
            self.folder,
            {
                rows: lambda path: write_csv(path, flat, leading=(*names, *options)),
                data: lambda path: write_json(path, content),
                text: lambda path: write_text(
                    path,
                    table_text(
                        device,
                        self._table(),
                        *summary_lines(self.results, self.sweep.request.baseline),
                    ),
                ),
            },
        )
