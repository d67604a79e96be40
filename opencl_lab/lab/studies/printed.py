"""The figures printed in the source reports, with the corresponding rows measured here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rich.table import Table
from rich.text import Text

from opencl_lab.core.records import parsed, typed
from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.studies.descriptor import Point


@dataclass(frozen=True)
class Printed:
    """A time printed in a report, and the name of our corresponding row."""

    study: str
    what: str
    hardware: str
    point: Mapping[str, int]
    ours: str
    milliseconds: float


@cache
def printed_figures() -> tuple[Printed, ...]:
    """Return the known figures of the reports."""
    text = files("opencl_lab.lab.studies").joinpath("data/printed.json").read_text(encoding="utf-8")
    return tuple(typed(list[Printed], parsed(text)["figures"]))


@dataclass(frozen=True)
class Beside:
    """A printed figure, and the corresponding measured row, if there is one."""

    printed: Printed
    row: Measurement | None

    def as_dict(self) -> dict[str, Any]:
        """Return the values for the JSON document; `measured` is None without a row."""
        row = self.row
        measured = None
        if row is not None and row.total_ms is not None:
            measured = {"total_ms": row.total_ms.as_dict(), "kernel_ms": row.kernel_ms}
        return {**vars(self.printed), "measured": measured}

    @property
    def sentence(self) -> str:
        """The figure and ours, in words."""
        printed, times = self.printed, self.row.total_ms if self.row else None
        text = f"{printed.what}, {Point(printed.point)}: {plain(printed.milliseconds, 4)} ms on "
        text += f"{printed.hardware}; {printed.ours} here "
        if times is None or self.row is None:
            return f"{text}was not measured."
        kernels = f", its kernels {plain(self.row.kernel_ms)} ms" if self.row.kernel_ms else ""
        return f"{text}takes {plain(times.median)} ms{kernels}."


def beside_printed(
    study: str, rows: Iterable[tuple[Mapping[str, Any], Measurement]]
) -> list[Beside]:
    """Return the figures of a study, each with the first correct row of its problem."""
    there = [(before.items(), row) for before, row in rows if row.ok]
    found = []
    for figure in (figure for figure in printed_figures() if figure.study == study):
        at = (row for before, row in there if figure.point.items() <= before)
        here = (row for row in at if row.implementation == figure.ours)
        found.append(Beside(figure, next(here, None)))
    return found


def printed_table(figures: Sequence[Beside], here: str) -> Table:
    """Return a table of what was printed and where, and what was measured `here`."""
    table = Table(title="The report's figures beside ours", title_justify="left")
    table.caption, table.caption_justify = Text(f"here: {here}"), "left"
    for name in ("what", "at", "the report's hardware", "row here"):
        table.add_column(name, overflow="fold")
    for name in ("ms printed", "ms here", "min..max", "kernel ms here"):
        table.add_column(name, justify="right", no_wrap=True)
    for item in figures:
        figure, times = item.printed, item.row.total_ms if item.row else None
        table.add_row(
            *(figure.what, str(Point(figure.point)), figure.hardware, figure.ours),
            number(figure.milliseconds),
            number(times.median) if times else "not measured",
            f"{number(times.min, 3)}..{number(times.max, 3)}" if times else "-",
            number(item.row.kernel_ms if item.row else None),
        )
    return table
