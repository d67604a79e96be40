"""Studies that were measured earlier, read from their documents; answers are drawn anew."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import SCALES, Machine, Part, PartResult
from opencl_lab.lab.studies.outcome import Outcome

__all__ = ["stored_outcome"]


def stored_outcome(results: Results) -> Outcome:
    """Return what a document of `oclab study` says, as the outcome that it was.

    Points that the study no longer has are left out, and those that it has now are missing.

    Raises
    ------
    InvalidProblem
        If it is no document of a study that there is, or damaged.
    """
    content, known = results.content, results.device
    study = STUDIES.get(str(content.get("study")))
    if results.command != "study" or study is None or content.get("scale") not in SCALES:
        raise InvalidProblem(f"{results.path} is no document of a study")
    try:
        name, kind, platform, driver = (
            str(known[key]) for key in ("name", "kind", "platform", "driver")
        )
        device = Device(name, kind, platform=platform, driver=driver)
        machine = Machine(**results.mapping("machine"))
        seconds = float(content.get("seconds") or 0.0)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidProblem(f"{results.path} is damaged: {error}") from error
    scale = str(content["scale"])
    parts = [_part_result(results, part, scale) for part in study.parts_on(device)]
    measured = [result for result in parts if result.rows]
    for result in measured[:1]:
        result.notes += [str(note) for note in content.get("notes") or ()]
    stopped = str(content.get("stopped") or "")
    seed = int(content.get("seed") or 0)
    return Outcome(study, scale, seed, device, measured, seconds, stopped, machine)


def _part_result(results: Results, part: Part, scale: str) -> PartResult:
    """Return the rows of a part, by its points; those without rows are left out."""
    found = PartResult(part)
    for point in part.points_at(scale):
        wanted = {"part": part.name, **point.options}
        rows = [
            row.measurement
            for row in results.rows
            if all(row.leading.get(name) == value for name, value in wanted.items())
        ]
        if rows:
            found.rows.append((point, rows))
    return found
