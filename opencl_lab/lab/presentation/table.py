"""Tables of all kinds: a model of cells, shown in terminals, files and pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table
from rich.text import Text

from opencl_lab.core.paths import write_target
from opencl_lab.lab.engine.row import COLUMNS, Measurement
from opencl_lab.lab.engine.speedups import with_base
from opencl_lab.lab.measuring.roofline import share_text
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.screen import Screen

OPTIONAL_COLUMNS = (
    *("imbalance", "min..max", "transfer ms", "error/bound", "kernel % peak", "kernel ms"),
    *("GB/s", "GFLOP/s", "speed-up"),
)
"""Columns that are left out on a narrow terminal, in this order."""
PAGE_ONLY = ("efficiency", "build ms")
"""Columns for which a terminal has no room; the efficiency is shown of rows over ranks."""
DEVICE_ROWS = "@device: the data were on the device, before and after"
OTHER_RUNS = "kernel ms: measured with events, in other calls than total ms"
FILE_WIDTH = 140  # of tables in text files
WRAPPED = 16  # letters from which texts such as reasons may be wrapped
COLOURS = {"ok": "green", "failed": "red", "absent": "dim"}
LARGEST = 1e300  # above it, axes and ratios overflow

Item = TypeVar("Item")


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the number by which it is sorted (None: by text), its style, a remark.

    A cell with `heads` names its row.
    """

    text: str = ""
    order: float | None = None
    style: str = ""
    tip: str = ""
    heads: bool = False


@dataclass(frozen=True)
class CellTable:
    """A table without empty columns: its heads, rows of cells, and a caption."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        columns: Mapping[str, Callable[[Item], Cell]],
        caption: str = "",
    ) -> CellTable:
        """Return a table with a row for each item, and the columns in which one has a text."""
        made = {head: [make(item) for item in items] for head, make in columns.items()}
        kept = {head: x for head, x in made.items() if not x or any(cell.text for cell in x)}
        return cls(list(kept), list(zip(*kept.values(), strict=True)), caption)

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of each column: ``name`` if it names the rows, ``number``, or ``text``."""
        columns = [[row[index] for row in self.rows] for index in range(len(self.heads))]
        numbers = [any(cell.order is not None for cell in column) for column in columns]
        return [
            "name" if any(cell.heads for cell in column) else "number" if number else "text"
            for column, number in zip(columns, numbers, strict=True)
        ]

    def table(self, title: str) -> Table:
        """Return it for a terminal."""
        made = titled_table(title, (), ())
        made.caption = Text(self.caption) if self.caption else None
        for index, (head, kind) in enumerate(zip(self.heads, self.kinds, strict=True)):
            longest = max((len(row[index].text) for row in self.rows), default=0)
            if kind == "text":
                least = WRAPPED if longest > WRAPPED else None
                made.add_column(Text(head), overflow="fold", min_width=least)
            else:
                justify: Any = "right" if kind == "number" else "left"
                made.add_column(Text(head), justify=justify, no_wrap=True)
        for row in self.rows:
            made.add_row(*(Text(cell.text or "-", COLOURS.get(cell.style, "")) for cell in row))
        return made


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits, without exponent if that is short."""
    if value is None:
        return "-"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:.{digits}g}"
        return f"{value:.0f}" if "e" in text else text
    return f"{value:.2e}"


def ratio_text(ratio: float | None) -> str:
    """Return a ratio as text, such as ``1.50x``."""
    if ratio is None:
        return "-"
    digits = 2 if ratio < 1000 else 0
    return f"{number(ratio, 2) if ratio < 0.1 else f'{ratio:.{digits}f}'}x"


def finite(value: Any) -> float | None:
    """Return a number that can be drawn; None for other values, such as NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return float(value)


def number_cell(value: Any, digits: int = 4) -> Cell:
    """Return the cell of a number; empty for None, the text of any other value."""
    if value is None or finite(value) is None:
        return Cell("" if value is None else str(value))
    return Cell(f"{value:,}" if isinstance(value, int) else number(value, digits), float(value))


def ratio_cell(ratio: float | None, style: str = "") -> Cell:
    """Return the cell of a ratio; empty for None."""
    return Cell() if ratio is None else Cell(ratio_text(ratio), ratio, style)


def field(name: str, cell: Callable[[Any], Cell] = number_cell) -> Callable[[Any], Cell]:
    """Return what makes the cell of a field of a mapping."""
    return lambda item: cell(item.get(name))


def median_cell(times: Times | None) -> Cell:
    """Return the cell of a median."""
    return number_cell(None if times is None else times.median)


def spread_cell(times: Times | None) -> Cell:
    """Return the cell of min and max of times, sorted by the relative spread."""
    if times is None:
        return Cell()
    text = f"{number(times.min, 3)}..{number(times.max, 3)}"
    low, high = (number(end, 3) for end in times.interval)
    tip = f"{times.runs} runs; the true median lies between {low} and {high} ms"
    return Cell(text, (times.max - times.min) / times.median if times.median else 0.0, tip=tip)


def titled_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return a table with columns of words, then right-aligned columns of numbers; none wraps."""
    made = Table(title=Text(title), title_justify="left", title_style="bold")
    made.caption_justify = "left"
    for name in words:
        made.add_column(Text(name), no_wrap=True)
    for name in numbers:
        made.add_column(Text(name), justify="right", no_wrap=True)
    return made


def table_text(*shown: Table | str, width: int = FILE_WIDTH) -> str:
    """Return tables and sentences as the text of a file."""
    console = Screen(file=io.StringIO(), width=width)
    for item in shown:
        console.print(item)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _name(row: Measurement) -> Cell:
    says_side = row.data == "host" or "@device" in row.implementation
    side = "" if says_side else " (data on the device)"
    return Cell(row.label + side, style=row.kind, heads=True)


def _kernels(row: Measurement) -> Cell:
    cell, spread = number_cell(row.kernel_ms), spread_cell(row.kernel_times)
    return Cell(cell.text, cell.order, tip=f"{spread.text} ms, {spread.tip}" if spread.text else "")


def _result(row: Measurement) -> Cell:
    if row.ok:
        return Cell("ok" + (f", {row.note}" if row.note else ""), style="ok")
    if row.status == "unavailable":
        return Cell(row.reason or row.status, style="absent")
    return Cell(f"{row.status}: {row.reason}" if row.reason else row.status, style="failed")


def _share(name: str) -> Callable[[Measurement], Cell]:
    """Return what makes the cell of a share of the time of ranks."""

    def cell(row: Measurement) -> Cell:
        share = None if row.over_ranks is None else getattr(row.over_ranks, name)
        return Cell() if share is None else Cell(f"{share:.0%}", share)

    return cell


def measured_columns(
    rows: Sequence[Measurement], bases: Sequence[str]
) -> dict[str, Callable[[Measurement], Cell]]:
    """Return the columns of measured rows: times, rate, speed-up, shares of ranks, error, result.

    Rates are by total time. The error is relative to the operation's bound, so a correct result
    has at most 1. The share of the device's peak is by kernel time.
    """
    flops = any(row.gflops for row in rows)
    rate: dict[str, Callable[[Measurement], Cell]] = {
        "GFLOP/s": lambda row: number_cell(row.gflops)
    }
    return {
        "implementation": _name,
        "kernel ms": _kernels,
        "transfer ms": lambda row: number_cell(row.transfer_ms or None, 3),
        "total ms": lambda row: median_cell(row.total_ms),
        "min..max": lambda row: spread_cell(row.total_ms),
        **(rate if flops else {"GB/s": lambda row: number_cell(row.gbps)}),
        "kernel % peak": lambda row: Cell(share_text(row.peak), row.peak) if row.peak else Cell(),
        "speed-up" + ("\nover " + ",\n".join(bases) if bases else ""): (
            lambda row: ratio_cell(row.speedup)
        ),
        "efficiency": lambda row: number_cell(row.efficiency, 2),
        "compute": _share("compute"),
        "comm.": _share("communication"),
        "waiting": _share("waiting"),
        "imbalance": _share("imbalance"),
        "error/bound": lambda row: number_cell(
            row.difference.error_over_bound if row.difference else None, 2
        ),
        "build ms": lambda row: number_cell(row.build_ms, 3),
        "result": _result,
    }


def measured_table(rows: Sequence[Measurement]) -> CellTable:
    """Return the rows of one problem; a caption explains what is special.

    The heading of the speed-ups names their baseline, see `with_base`.
    """
    [(_, rows)], bases = with_base([(0, rows)])
    over_ranks = any(row.over_ranks for row in rows)
    left_out = PAGE_ONLY[over_ranks:]
    columns = {name: x for name, x in measured_columns(rows, bases).items() if name not in left_out}
    captions = [DEVICE_ROWS] * any(row.data == "device" for row in rows)
    captions += [OTHER_RUNS] * (not over_ranks and any(map(_kernels_above_total, rows)))
    peak = peak_caption(row.peak_note for row in rows)
    return CellTable.of(rows, columns, "\n".join([*captions, *([peak] if peak else [])]))


def comparison_table(rows: Sequence[Measurement], title: str) -> Table:
    """Return the rows of one problem as a table for a terminal, see `measured_table`."""
    return measured_table(rows).table(title)


class Measurements(list[Measurement]):
    """Measured rows: a list that prints as a table with a title."""

    def __init__(self, rows: Iterable[Measurement] = (), title: str = ""):
        super().__init__(rows)
        self.title = title

    def __repr__(self) -> str:
        return table_text(comparison_table(self, self.title)).rstrip()


def _kernels_above_total(row: Measurement) -> bool:
    total = row.total_ms
    return row.kernel_ms is not None and total is not None and row.kernel_ms > total.median


def peak_caption(notes: Iterable[str]) -> str | None:
    """Return a caption about shares above 100 % of the peak; None if there are none."""
    found = "; ".join(dict.fromkeys(note for note in notes if note))
    return f">100 % of peak: {found}" if found else None


def write_csv(
    path: Path, rows: Iterable[tuple[Mapping[str, Any], Measurement]], leading: Sequence[str] = ()
) -> None:
    """Write measurements as CSV, each with its own values of the `leading` columns before it."""
    write_rows(path, ({**before, **row.as_csv()} for before, row in rows), [*leading, *COLUMNS])


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write these columns of rows as CSV; raise InvalidProblem if the file cannot be written."""
    with write_target(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
