"""Tables of a page: cells with their text, sort key and tooltip."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.report.documents import finite

NO_PICTURE = Markup("")
PLACES = re.compile(r"(?<=:)|(?=[\[@])")  # opencl:|naive|[constant]|@device
LONG = 24  # rows; longer tables scroll and can be searched


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the number by which it is sorted (None: by text), CSS class and tooltip.

    A cell with `heads` names its row, and stays visible while the others scroll. A `picture` is an
    SVG in place of the text.
    """

    text: str
    order: float | None = None
    style: str = ""
    tip: str = ""
    heads: bool = False
    picture: Markup = NO_PICTURE

    @property
    def markup(self) -> Markup:
        """The text; where it names a row, with places at which it may be broken."""
        return Markup("<wbr>").join(PLACES.split(self.text) if self.heads else [self.text])


@dataclass(frozen=True)
class PageTable:
    """A table: its heads, the CSS class of each column (see `_kind`), and its rows."""

    heads: Sequence[str]
    kinds: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    @property
    def long(self) -> bool:
        """Whether it has too many rows to be shown at once."""
        return len(self.rows) > LONG


def number_cell(value: Any, digits: int = 4) -> Cell:
    """Return the cell of a number; empty for None, the text of any other value."""
    if value is None:
        return Cell("")
    if finite(value) is None:
        return Cell(str(value))
    text = f"{value:,}" if isinstance(value, int) else number(value, digits)
    return Cell(text, float(value))


def ratio_cell(value: float | None, style: str = "") -> Cell:
    """Return the cell of a ratio, such as ``1.25x``."""
    if value is None:
        return Cell("")
    text = number(value, 2) if value < 0.1 else f"{value:.2f}" if value < 1000 else f"{value:.0f}"
    return Cell(f"{text}x", value, style)


def spread_cell(times: Times | None) -> Cell:
    """Return the cell of min and max of a time, sorted by the relative spread."""
    if times is None:
        return Cell("")
    text = f"{number(times.min, 3)}\u2009\u2013\u2009{number(times.max, 3)}"
    wide = (times.max - times.min) / times.median if times.median else 0.0
    low, high = (number(end, 3) for end in times.interval)
    tip = f"{times.runs} runs; the true median lies between {low} and {high} ms"
    return Cell(text, wide, tip=tip)


def table_without_empty(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str = ""
) -> PageTable:
    """Return a table without the columns that are empty in all rows."""
    filled = [[bool(cell.text or cell.picture) for cell in row] for row in rows]
    kept = [index for index in range(len(heads)) if any(row[index] for row in filled)]
    shown = [[row[index] for index in kept] for row in rows]
    kinds = [_kind(column) for column in zip(*shown, strict=True)]
    return PageTable([heads[index] for index in kept], kinds, shown, caption)


def _kind(column: Sequence[Cell]) -> str:
    """Return the class of a column: ``name`` if it names the rows, ``number``, or none."""
    if any(cell.heads for cell in column):
        return "name"
    return "number" if any(cell.order is not None for cell in column) else ""
