"""Measured rows as a table for the terminal, notebooks and text files, and as CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from opencl_lab.core.paths import write_target
from opencl_lab.lab.engine.row import COLUMNS, Measurement
from opencl_lab.lab.measuring.roofline import share_text
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.screen import Screen
from opencl_lab.lab.presentation.speedups import with_base

ERROR = "error/bound"
OPTIONAL_COLUMNS = (
    *("imbalance", "min..max", "transfer ms", ERROR, "kernel % peak", "kernel ms"),
    *("GB/s", "GFLOP/s", "speed-up"),
)
"""Columns that are left out on a narrow terminal, in this order."""
RANK_SHARES = ("efficiency", "compute", "comm.", "waiting", "imbalance", "model ms")
"""Columns of rows over ranks, instead of times of kernels and transfers, and of errors."""
DEVICE_ROWS = "@device: the data were on the device, before and after"
OTHER_RUNS = "kernel ms: measured with events, in other calls than total ms"
FILE_WIDTH = 140  # of tables in text files
RESULT_WIDTH = 16  # least width of the column of results, where reasons wrap


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
    return "-" if ratio is None else f"{ratio:.2f}x"


def times_texts(times: Times | None) -> tuple[str, str]:
    """Return the median of times, and their range."""
    if times is None:
        return "-", "-"
    return number(times.median), f"{number(times.min, 3)}..{number(times.max, 3)}"


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


def comparison_table(rows: Sequence[Measurement], title: str) -> Table:
    """Return the rows as a table: times, rate, speed-up, error and result.

    The heading of the speed-ups names their baseline, see `with_base`. Rates are by total time.
    The error is relative to the operation's bound, so a correct result has at most 1. The share
    of the device's peak is by kernel time, and shown if `oclab doctor` has measured the peak.
    """
    [(_, rows)], bases = with_base([(0, rows)])
    wide = any(not row.ok or row.note for row in rows)
    flops = any(row.gflops for row in rows)
    captions = [DEVICE_ROWS] * any(row.data == "device" for row in rows)
    over_ranks = any(row.over_ranks for row in rows)
    captions += [OTHER_RUNS] * (not over_ranks and any(map(_kernels_above_total, rows)))
    peak = peak_caption(row.peak_note for row in rows)
    caption = "\n".join([*captions, *([peak] if peak else [])])
    peaks = any(row.peak is not None for row in rows)
    rates = ["GFLOP/s" if flops else "GB/s", *(["kernel % peak"] if peaks else [])]
    speedup = "speed-up" + ("\nover " + ",\n".join(bases) if bases else "")
    first, last = ((), RANK_SHARES) if over_ranks else (("kernel ms", "transfer ms"), (ERROR,))
    numbers = (*first, "total ms", "min..max", *rates, speedup, *last)
    table = titled_table(title, ["implementation"], numbers)
    table.caption = Text(caption) if caption else None
    table.add_column("result", overflow="fold", min_width=RESULT_WIDTH if wide else None)
    for row in rows:
        correct = "ok" + (f", {row.note}" if row.note else "")
        verdict = Text(correct, "green") if row.ok else Text(f"{row.status}: {row.reason}", "red")
        table.add_row(
            Text(row.label),
            *(() if over_ranks else (number(row.kernel_ms), number(row.transfer_ms, 3))),
            *times_texts(row.total_ms),
            number(row.gflops if flops else row.gbps),
            *([share_text(row.peak)] if peaks else []),
            ratio_text(row.speedup),
            *(_shares_texts(row) if over_ranks else [_error_text(row)]),
            verdict if row.status != "unavailable" else Text(row.reason, "dim"),
        )
    return table


def _error_text(row: Measurement) -> str:
    return number(None if row.difference is None else row.difference.error_over_bound, 2)


def _shares_texts(row: Measurement) -> list[str]:
    """Return the cells of the columns `RANK_SHARES`."""
    found = row.over_ranks
    if found is None:
        return ["-"] * len(RANK_SHARES)
    parts = (found.compute, found.communication, found.waiting, found.imbalance)
    efficiency = "-" if row.efficiency is None else f"{row.efficiency:.2f}"
    return [efficiency, *(f"{part:.0%}" for part in parts), number(found.model_ms)]


class Measurements(list[Measurement]):
    """Measured rows: a list that prints as a table with a title, also in notebooks."""

    def __init__(self, rows: Iterable[Measurement] = (), title: str = ""):
        super().__init__(rows)
        self.title = title

    def __repr__(self) -> str:
        return table_text(comparison_table(self, self.title)).rstrip()

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        table = comparison_table(self, self.title)
        columns = table.columns
        lines = [
            _html_line("th", (column.header for column in columns)),
            *(_html_line("td", cells) for cells in zip(*(c.cells for c in columns), strict=True)),
        ]
        caption, body = html.escape(self.title), "\n".join(lines)
        below = f"<p>{html.escape(str(table.caption))}</p>" if table.caption else ""
        return f"<table>\n<caption>{caption}</caption>\n{body}\n</table>{below}"


def _html_line(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


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
