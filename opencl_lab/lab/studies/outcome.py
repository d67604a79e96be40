"""The outcome of a study: rows, answers, missing points; as document, tables and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from opencl_lab.core.device import Device
from opencl_lab.core.records import as_json
from opencl_lab.core.wording import duration
from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import Measurement, first_failure
from opencl_lab.lab.presentation.table import comparison_table
from opencl_lab.lab.studies.descriptor import Machine, Part, PartResult, Point, Study
from opencl_lab.lab.studies.plots import Draw, plots_of

INTERRUPTED = "it was interrupted"
FILE_WIDTH = 160  # of tables in text files


@dataclass(frozen=True)
class Outcome:
    """The outcome of a study: its rows, and the answers from them."""

    study: Study
    scale: str
    seed: int
    device: Device
    parts: Sequence[PartResult]  # those with at least one measured point
    seconds: float  # duration
    stopped: str = ""  # why it ended early, such as `INTERRUPTED`; empty if it did not
    machine: Machine = field(default_factory=Machine)

    @property
    def answers(self) -> list[tuple[str, list[str]]]:
        """The questions and their answers."""
        return [(q.text, q.answer(self.parts, self.machine)) for q in self.study.questions]

    @property
    def rows(self) -> Iterator[tuple[dict[str, Any], Measurement]]:
        """All rows, each with the options of its problem."""
        for result in self.parts:
            for point, rows in result.rows:
                before = {"part": result.part.name, **result.part.options, **point.options}
                yield from ((before, row) for row in rows)

    @property
    def missing(self) -> list[tuple[Part, Point]]:
        """The points that were not measured."""
        measured = {
            (result.part.label, str(point)) for result in self.parts for point, _ in result.rows
        }
        return [
            (part, point)
            for part in self.study.parts_on(self.device)
            for point in part.points_at(self.scale)
            if (part.label, str(point)) not in measured
        ]

    @property
    def notes(self) -> list[str]:
        """What was left out at points that were measured."""
        return [note for result in self.parts for note in result.notes]

    @property
    def plots(self) -> dict[str, Draw]:
        """Functions that draw the plots, by the names of their files; none after an interrupt."""
        if self.stopped == INTERRUPTED:
            return {}
        drawn: dict[str, Draw] = {}
        for result in self.parts:
            drawn.update(plots_of(result, f"{self._title(result.part)} on {self.device}"))
        return drawn

    @property
    def status(self) -> int:
        """The exit status."""
        return first_failure(rows for result in self.parts for _, rows in result.rows)

    def _title(self, part: Part) -> str:
        """Return the title of a part, or of the study if it has only one."""
        return " ".join(dict.fromkeys((self.study.name, part.name)))

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the JSON document, without the device."""
        missing = self.missing
        return {
            "study": self.study.name,
            "scale": self.scale,
            "seed": self.seed,
            "complete": not missing,
            "stopped": self.stopped if missing else "",
            "missing": [{"part": part.name, **point.options} for part, point in missing],
            "seconds": round(self.seconds, 3),
            "machine": as_json(self.machine),
            "answers": [{"question": text, "answer": answer} for text, answer in self.answers],
            "notes": self.notes,
            "crossovers": [
                {"part": result.part.name, **vars(found)}
                for result in self.parts
                for found in crossovers(result.series)
            ],
            "plots": list(self.plots),
            "results": [{**before, **row.as_row()} for before, row in self.rows],
        }

    def tables(self) -> Iterator[Table]:
        """Yield the table of each point."""
        for result in self.parts:
            for point, rows in result.rows:
                yield comparison_table(rows, f"{self._title(result.part)}: {point}")

    def summary(self) -> str:
        """Return the answers as text."""
        lines = [f"{self.study.name} ({self.scale}): {self.study.shows}", str(self.device)]
        if self.seconds:  # older documents do not say
            lines.append(f"measured in {duration(self.seconds)}")
        if self.missing:
            lines += ["", "This study is not complete.", *(f"  {line}" for line in self.gaps)]
        for question, answer in self.answers:
            lines += ["", question, *(f"  {sentence}" for sentence in answer)]
        if self.notes:
            lines += ["", "What was left out?", *(f"  {n}" for n in dict.fromkeys(self.notes))]
        return "\n".join(lines) + "\n"

    @property
    def gaps(self) -> list[str]:
        """Why the study ended early, and the missing points, a sentence for each part."""
        if not self.missing:
            return []
        ended = [f"{self.stopped[:1].upper()}{self.stopped[1:]}."] if self.stopped else []
        points: dict[str, list[str]] = {}
        for part, point in self.missing:
            points.setdefault(part.name, []).append(str(point))
        return ended + [
            f"Not measured: {name} at {'; '.join(where)}." for name, where in points.items()
        ]
