"""Studies of earlier runs, read from their documents; their questions are answered again."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.records import Finite, typed
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import SCALES, Machine, Part, PartResult
from opencl_lab.lab.studies.outcome import Outcome


class _Device(Struct):
    name: str
    kind: str
    platform: str
    driver: str


class _Head(Struct):
    """The content of a document of a study besides its rows; older ones have less."""

    scale: str
    device: _Device
    machine: Machine = Machine()
    seed: int | None = None
    seconds: Finite | None = None
    notes: list[Any] | None = None
    stopped: str | None = None


def stored_outcome(results: Results) -> Outcome:
    """Return the outcome in a document of `oclab study`.

    Points that the study no longer has are left out, and new ones are missing. InvalidProblem is
    raised for a document that is damaged, or of an unknown study.
    """
    study = STUDIES.get(str(results.content.get("study")))
    if results.command != "study" or study is None or results.content.get("scale") not in SCALES:
        raise InvalidProblem(f"{results.path} is no document of a study")
    try:
        head = typed(_Head, results.content)
    except ValueError as error:
        raise InvalidProblem(f"{results.path} is damaged: {error}") from error
    known = head.device
    device = Device(known.name, known.kind, platform=known.platform, driver=known.driver)
    parts = [_part_result(results, part, head.scale) for part in study.parts_on(device)]
    measured = [result for result in parts if result.rows]
    for result in measured[:1]:
        result.notes += map(str, head.notes or ())
    seconds, stopped = head.seconds or 0.0, head.stopped or ""
    return Outcome(
        study, head.scale, head.seed or 0, device, measured, seconds, stopped, head.machine
    )


def _part_result(results: Results, part: Part, scale: str) -> PartResult:
    """Return the rows of a part by points; points without rows are left out."""
    found = PartResult(part)
    for point in part.points_at(scale):
        wanted = {"part": part.name, **point.options}.items()
        rows = [row.measurement for row in results.rows if wanted <= row.leading.items()]
        if rows:
            found.rows.append((point, rows))
    return found
