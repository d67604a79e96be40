"""The sizes that `oclab bench OPERATION` goes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opencl_lab.cli.common import document
from opencl_lab.comparison.request import Request
from opencl_lab.discovery import Selection
from opencl_lab.measuring.roofline import stored_peaks
from opencl_lab.operation import Operation
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.solver import Problem

__all__ = ["Sweep", "SweepPoint"]


@dataclass(frozen=True)
class SweepPoint:
    """One size with its problem, and all options of that."""

    size: int
    problem: Problem
    options: Mapping[str, Any]


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

    def data(self, point: SweepPoint) -> Arrays:
        """Return random inputs of one size."""
        return self.chosen.generate(point.problem, self.options["seed"], **point.options)

    def document(
        self, results: Sequence[Mapping[str, Any]], sizes: Sequence[int], **more: Any
    ) -> dict[str, Any]:
        """Return the JSON document of the sizes that were measured, with the device's peaks."""
        peaks = stored_peaks(self.selection.device)
        return document(
            "bench",
            peaks=None if peaks is None else peaks.as_dict(),
            device=self.selection.as_dict(),
            problem={"operation": self.chosen.name, "sizes": sizes},
            options=self.options,
            results=results,
            **more,
        )
