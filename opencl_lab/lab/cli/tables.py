"""Fitting tables into a terminal, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where they are used: see `opencl_lab.lab.cli.lazy`
    from rich.console import Console
    from rich.table import Column, Table

IN_CELLS = str.maketrans({"|": "\\|", "*": "\\*", "\n": "<br>"})
"""Escapes of special characters in tables of Markdown."""


def fit(table: Table, console: Console, optional: Sequence[str]) -> list[str]:
    """Remove `optional` columns in order until no word has to be cut; return their names.

    A column's name is the first line of its heading. The widths of the others are set here, since
    rich reduces wide columns without regard to words, and crops tables that are too wide.
    """
    left_out: list[str] = []
    for name in optional:
        if sum(map(_least_width, table.columns)) <= _room(table, console):
            break
        kept = [column for column in table.columns if _name(column) != name]
        left_out += [name] * (len(kept) < len(table.columns))
        table.columns = kept
    room = _room(table, console)
    widths = list(map(_whole_width, table.columns))
    if sum(widths) > room:
        least = list(map(_least_width, table.columns))
        while sum(widths) > room and max(widths) > 1:
            # The widest of those with room; if even the words do not fit, the longest are cut.
            spare = [width - low for width, low in zip(widths, least, strict=True)]
            widths[max(range(len(widths)), key=lambda at: (spare[at] > 0, widths[at]))] -= 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    return left_out


def _name(column: Column) -> str:
    return str(column.header).split("\n")[0]


def markdown(table: Table) -> str:
    """Return a table in Markdown, with its title above and its caption below."""

    def line(cells: Iterable[Any]) -> str:
        return f"| {' | '.join(str(cell).translate(IN_CELLS) for cell in cells)} |"

    heads = line(column.header for column in table.columns)
    ends = line("---:" if column.justify == "right" else "---" for column in table.columns)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    title = ["", f"**{table.title}**"] if table.title else []
    # A line that begins with ">" would be a quotation.
    caption = [str(table.caption).replace(">", "\\>").replace("\n", "  \n"), ""]
    return "\n".join(
        [*title, "", heads, ends, *map(line, rows), "", *(caption if table.caption else [])]
    )


def _room(table: Table, console: Console) -> int:
    """Return the width left for the contents of columns: each needs two spaces and a line."""
    return console.width - 1 - 3 * len(table.columns)


def _texts(column: Column) -> list[str]:
    return [str(cell) for cell in (column.header, *column.cells)]


def _whole_width(column: Column) -> int:
    """Return the width of a column's longest line."""
    lines = (line for text in _texts(column) for line in text.split("\n"))
    return max(column.min_width or 0, *map(len, lines), 0)


def _least_width(column: Column) -> int:
    """Return the width of a column's longest word, or of its longest line if it must not wrap."""
    if column.min_width is not None:
        return column.min_width
    if column.no_wrap:
        return _whole_width(column)
    return max((len(word) for text in _texts(column) for word in text.split()), default=0)
