"""The sizes that `oclab bench OPERATION` goes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from opencl_lab._version import __version__
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.records import as_json
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import Selection
from opencl_lab.lab.cli.common import document, settings
from opencl_lab.lab.cli.options import RunOptions, used_options
from opencl_lab.lab.comparison.measure import Measurement
from opencl_lab.lab.comparison.patience import Patience
from opencl_lab.lab.comparison.request import Request, Schedule, check_comparison
from opencl_lab.lab.comparison.trial import reference_trial
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import Problem

__all__ = ["Sweep", "SweepPoint", "patience_of", "sweep_of"]

ROWS = ("algorithms", "variants", "against", "threads", "resident")
"""What a request says of which rows there are."""


@dataclass(frozen=True)
class SweepPoint:
    """One size with its problem, and what is to be run.

    `configs` are the kernel parameters of each run of ours.
    """

    size: int
    problem: Problem
    schedule: Schedule
    configs: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Sweep:
    """One call of `oclab bench OPERATION`, all of its problems checked.

    `options` are those that all sizes share, and the seed.
    """

    chosen: Operation[Any]
    selection: Selection
    points: Sequence[SweepPoint]
    options: Mapping[str, Any]
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
        return f"{self.chosen.size_option}={size}: {self.problem(size).title}"

    def options_of(self, size: int) -> dict[str, Any]:
        """Return all options of the problem of a size."""
        given = {name: value for name, value in self.options.items() if name != "seed"}
        return self.chosen.with_defaults({**given, self.chosen.size_option: size})

    def problem(self, size: int) -> Problem:
        """Return the problem of a size."""
        found: Problem = self.chosen.problem(**self.options_of(size))
        return found

    def request_at(self, size: int) -> Request:
        """Return what is run at a size."""
        return self.request

    def point(self, size: int) -> SweepPoint:
        """Return a size that is checked.

        Raises
        ------
        InvalidProblem, InvalidConfig
            If its problem does not fit the device, or cannot be run as asked for.
        """
        chosen, device, problem = self.chosen, self.selection.device, self.problem(size)
        schedule = check_comparison(chosen, problem, self.request_at(size), device)
        configs = [
            {}
            if name in chosen.choices
            else dict(chosen.algorithm(name).configure(problem, device, values))
            for name, _, values in schedule.runs
        ]
        return SweepPoint(size, problem, schedule, configs)

    @property
    def identity(self) -> dict[str, Any]:
        """All that the rows of a size depend on beside its own problem, in JSON-able values."""
        asked = {item.name: getattr(self.request, item.name) for item in fields(self.request)}
        templates = {name for item in self.chosen.algorithms for name in item.templates}
        references = self.points[0].schedule.references
        return {
            "operation": self.chosen.name,
            "options": dict(self.options),
            **asked,
            "references": [item.name for item in (*references.on_host, *references.on_device)],
            "device": self.selection.device.key,
            "version": __version__,
            "kernels": kernel_digest(tuple(sorted(templates))),
        }

    def label(self, point: SweepPoint) -> str:
        """Return what sentences call a size, such as ``n=1000``."""
        return f"{self.chosen.size_option}={point.size}"

    def data(self, size: int) -> Arrays:
        """Return random inputs of one size."""
        options = self.options_of(size)
        return self.chosen.generate(self.problem(size), self.options["seed"], **options)

    def about(self, sizes: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return what decides of which problems and implementations there are rows."""
        return {
            "device": self.selection.as_dict(),
            "problem": {"operation": self.chosen.name, "sizes": sizes},
            "options": self.options,
            "request": {name: getattr(self.request, name) for name in ROWS},
        }

    def document(
        self, results: Sequence[Mapping[str, Any]], sizes: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Return the JSON document of the sizes that were measured, with the device's peaks."""
        peaks = stored_peaks(self.selection.device)
        return document(
            "bench",
            peaks=as_json(peaks),
            **self.about(sizes),
            results=results,
            **more,
        )


def sweep_of(
    chosen: Operation[Any], sizes: Sequence[int], options: Mapping[str, Any], run: RunOptions
) -> Sweep:
    """Return the problems of all sizes, checked before the first one costs time.

    Raises
    ------
    InvalidProblem
        Also where all sizes are one problem, as options say all that a size says.
    """
    used = {**used_options(chosen, options), "seed": run.seed}
    del used[chosen.size_option]
    points: list[SweepPoint] = []
    sweep = Sweep(chosen, settings().begin(), points, used, run.request())
    points += map(sweep.point, sizes)
    if len(points) > 1 and all(point.problem == points[0].problem for point in points):
        raise InvalidProblem(
            f"{chosen.size_option} changes nothing beside the other options, so all sizes would be "
            f"the same problem: {points[0].problem.title}"
        )
    return sweep


def patience_of(sweep: Sweep, seconds: float | None) -> Patience:
    """Return what knows which references are too slow for the next size."""

    def trial(size: int, reference: str) -> Sequence[Measurement]:
        return reference_trial(
            sweep.chosen,
            sweep.problem(size),
            partial(sweep.data, size),
            sweep.request,
            reference,
            sweep.selection.device,
        )

    references = sweep.points[0].schedule.references
    return Patience(sweep.chosen, references, sweep.problem, trial, seconds)
