"""The outcome of a study: rows, answers, missing points; as document, tables, text and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rich.table import Table

from opencl_lab.core.device import Device
from opencl_lab.core.wording import duration
from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.engine.row import Measurement, first_failure
from opencl_lab.lab.presentation.plots import plots_of_sizes, plots_of_workers
from opencl_lab.lab.presentation.table import comparison_table
from opencl_lab.lab.report.documents import gaps_of
from opencl_lab.lab.studies.descriptor import PartResult, Study, StudyPart, StudyPoint

INTERRUPTED = "it was interrupted"
PLOTS = ("time", "speedup", "throughput", "workers", "ranks")
"""The plots of a part, which are the ends of the names of their files."""
Draw: TypeAlias = Callable[[Path], None]


@dataclass(frozen=True)
class StudyOutcome:
    """The outcome of a study: its rows, and the answers from them."""

    study: Study
    scale: str
    seed: int
    device: Device
    parts: Sequence[PartResult]  # those with at least one measured point
    seconds: float  # duration
    stopped: str = ""  # why it ended early, such as `INTERRUPTED`; empty if it did not

    @property
    def answers(self) -> list[tuple[str, list[str]]]:
        """The questions and their answers."""
        return [(question.text, question.answer(self.parts)) for question in self.study.questions]

    @property
    def rows(self) -> Iterator[tuple[dict[str, Any], Measurement]]:
        """All rows, each with the options of its problem."""
        for result in self.parts:
            for point, rows in result.rows:
                before = {"part": result.part.name, **result.part.options, **point.options}
                yield from ((before, row) for row in rows)

    @property
    def missing(self) -> list[tuple[StudyPart, StudyPoint]]:
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
        return {
            f"{result.part.name}-{kind}.png": draw
            for result in self.parts
            for kind, draw in _plots_of(result, f"{self._title(result.part)} on {self.device}")
        }

    @property
    def status(self) -> int:
        """The exit status."""
        return first_failure(rows for result in self.parts for _, rows in result.rows)

    def _title(self, part: StudyPart) -> str:
        """Return the title of a part, or of the study if it has only one."""
        return " ".join(dict.fromkeys((self.study.name, part.name)))

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the JSON document, without the device."""
        return {
            "study": self.study.name,
            "scale": self.scale,
            "seed": self.seed,
            **self._ending,
            "seconds": round(self.seconds, 3),
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
        return gaps_of(self._ending)

    @property
    def _ending(self) -> dict[str, Any]:
        """How the study ended, as documents have it."""
        missing = [{"part": part.name, **point.options} for part, point in self.missing]
        stopped = self.stopped if missing else ""
        return {"complete": not missing, "stopped": stopped, "missing": missing}


def _plots_of(result: PartResult, title: str) -> Iterator[tuple[str, Draw]]:
    """Yield the kinds of the plots of a part, and functions that draw them.

    Throughput replaces the speed-up if the baseline was not measured.
    """
    if not result.part.ranks:
        compared = any(row.speedup for _, rows in result.rows for row in rows)
        shown = ("time", "speedup" if compared else "throughput")
        for kind, _, draw in plots_of_sizes(result.series, result.part.axis):
            if kind in shown:
                yield kind, partial(draw, title=title)
    wanted = "ranks" if result.part.ranks else "workers"
    by_workers = [
        (point, plot.draw)
        for point, rows in result.rows
        for plot in plots_of_workers(rows)
        if plot.kind == wanted
    ]
    for point, draw in by_workers[-1:]:
        yield wanted, partial(draw, title=f"{title}, {point}")


def plot_names(study: Study) -> list[str]:
    """Return the names of all files of plots that a study may have."""
    return [f"{part.name}-{kind}.png" for part in study.parts for kind in PLOTS]
