"""`oclab bench OPERATION --shapes`: shapes for which an operation is slow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.options import RunOptions, used_options
from opencl_lab.lab.cli.sweep_outputs import SweepOutputs
from opencl_lab.lab.cli.values import whole_numbers
from opencl_lab.lab.engine.request import where_of
from opencl_lab.lab.engine.row import Side
from opencl_lab.lab.engine.sweep import Shape, ShapeSweep
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.shapes import ShapeResult, judged, summary, summary_lines, table
from opencl_lab.lab.presentation.table import table_text
from opencl_lab.lab.reference.descriptor import DeviceReference, HostReference

STANDARD = "standard"
SECONDS = 1.0
"""Default time limit of a shape: many are measured, each less precisely."""
UNLIMITED = math.inf
"""Limit of a call in seconds: times are estimated from smaller sizes, and shapes have no order."""


def shapes_of(chosen: Operation[Any], wanted: str) -> list[Shape]:
    """Return the standard shapes of an operation, or those of a file with a line for each."""
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


def shape_sweep_of(
    chosen: Operation[Any], shapes: Sequence[Shape], options: Mapping[str, Any], run: RunOptions
) -> ShapeSweep:
    """Return the problems of all shapes.

    Other libraries are added to the request, but no references in C.
    """
    named = (chosen.size_option, *chosen.shape_options)
    used = {n: value for n, value in used_options(chosen, options).items() if n not in named}
    used["seed"] = run.seed
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
    places = range(len(shapes))
    return ShapeSweep(chosen, settings().begin(), places, used, request, shapes)


@dataclass(frozen=True)
class ShapeOutputs(SweepOutputs):
    """Prints and writes the rows of all shapes, or of the first ones."""

    sweep: ShapeSweep

    results = ("shapes.csv", "shapes.json", "shapes.txt")
    plots = ()

    @cached_property
    def shapes(self) -> list[ShapeResult]:
        """The results of each shape."""
        sweep, device = self.sweep, self.sweep.selection.device
        side: Side = "device" if sweep.request.resident else "host"
        return [
            judged(
                sweep.shapes[place],
                rows,
                self._taken(place, device),
                side,
                sweep.request.baseline,
            )
            for place, rows in self.series
        ]

    def _taken(self, place: int, device: Device) -> str:
        """Return the algorithm that ``auto`` takes where the calls run."""
        point = self.sweep.point(place)
        return point.operation.choose(point.problem, where_of(point, device)).name

    def said(self) -> dict[str, Any]:
        """Return the content of the document besides the rows."""
        return {
            "sizes": [list(self.sweep.shapes[place]) for place, _ in self.series],
            "shapes": [result.as_dict() for result in self.shapes],
            "summary": summary(self.shapes),
        }

    def show(self) -> None:
        """Print the table and its summary."""
        settings().say_device()
        settings().show(self._table())
        for line in self._summary():
            settings().say(line)

    def text(self) -> str:
        """Return table and summary for a text file."""
        return table_text(f"on {self.sweep.selection.device}", self._table(), *self._summary())

    def draw(self) -> dict[str, Any]:
        """Return no plots, since shapes have no order."""
        return {}

    def _table(self) -> Any:
        chosen, baseline = self.sweep.chosen, self.sweep.request.baseline
        title = f"{self.sweep.title}: shapes, the worst last"
        return table(self.shapes, chosen.shape_options, title, baseline)

    def _summary(self) -> list[str]:
        return summary_lines(self.shapes, self.sweep.request.baseline)
