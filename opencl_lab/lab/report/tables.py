"""Tables of measured rows for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.measuring.roofline import share_text
from opencl_lab.lab.report.cells import (
    Cell,
    PageTable,
    number_cell,
    ratio_cell,
    spread_cell,
    table_without_empty,
)
from opencl_lab.lab.report.documents import objects
from opencl_lab.lab.report.sweeps import Sweep

CALL_COLUMNS = {
    "side": "arrays",
    "call_us": "µs per call",
    "host_us": "µs until it returns",
    "calls": "back-to-back calls",
}


def _name(row: Measurement) -> Cell:
    says_side = row.data == "host" or "@device" in row.implementation
    name = row.label + ("" if says_side else " (data on the device)")
    return Cell(name, style=row.kind, heads=True)


def _kernel(row: Measurement) -> Cell:
    """Return the kernel time; its spread is in the tooltip, to save a column."""
    spread = spread_cell(row.kernel_times)
    tip = f"{spread.text} ms, {spread.tip}" if spread.text else ""
    return replace(number_cell(row.kernel_ms), tip=tip)


def _error(row: Measurement) -> Cell:
    return number_cell(None if row.difference is None else row.difference.error_over_bound, 2)


def _verdict(row: Measurement) -> Cell:
    if row.ok:
        return Cell("ok" + (f", {row.note}" if row.note else ""), style="ok")
    style = "absent" if row.status == "unavailable" else "failed"
    return Cell(f"{row.status}: {row.reason}" if row.reason else row.status, style=style)


def _peak(row: Measurement) -> Cell:
    return Cell("") if row.peak is None else Cell(share_text(row.peak), row.peak)


COLUMNS: Mapping[str, Callable[[Measurement], Cell]] = {
    "implementation": _name,
    "total ms": lambda row: number_cell(row.total_ms.median if row.total_ms else None),
    "min \u2013 max": lambda row: spread_cell(row.total_ms),
    "kernel ms": _kernel,
    "transfer ms": lambda row: number_cell(row.transfer_ms or None, 3),
    "build ms": lambda row: number_cell(row.build_ms, 3),
    "GFLOP/s": lambda row: number_cell(row.gflops),
    "GB/s": lambda row: number_cell(row.gbps),
    "speed-up": lambda row: ratio_cell(row.speedup),
    "efficiency": lambda row: number_cell(row.efficiency, 2),
    "% of peak": _peak,
    "error/bound": _error,
    "result": _verdict,
}


def table_of(sweep: Sweep) -> PageTable:
    """Return the rows of a sweep, without the columns that are empty in all of them."""
    rows = sorted(sweep.rows, key=lambda row: [row.leading[name] for name in sweep.varied])
    measurements = [row.measurement for row in rows]
    flops = any(row.gflops for row in measurements)  # then GB/s is left out
    columns = {name: make for name, make in COLUMNS.items() if name != "GB/s" or not flops}
    cells = [
        [
            *(number_cell(row.leading[name]) for name in sweep.varied),
            *(make(row.measurement) for make in columns.values()),
        ]
        for row in rows
    ]
    runs = sorted({row.total_ms.runs for row in measurements if row.total_ms})
    span = " to ".join(str(count) for count in dict.fromkeys((runs[0], runs[-1]))) if runs else ""
    caption = f"Each time is the median of {span} runs." if runs else ""
    bases = dict.fromkeys(row.baseline for row in measurements if row.speedup is not None)
    caption += f" Speed-ups are over {', '.join(bases)}." * bool(bases)
    return table_without_empty((*sweep.varied, *columns), cells, caption)


def calls_table(calls: Sequence[Mapping[str, Any]]) -> PageTable:
    """Return a table of the cost of calls: sizes, what is called, then the figures."""
    known = ["what", *CALL_COLUMNS]
    sizes = [name for name in dict.fromkeys(name for call in calls for name in call)
             if name not in known]  # fmt: skip
    heads = [*(name.replace("_", " ") for name in sizes), "call", *CALL_COLUMNS.values()]
    rows = [
        [
            *(number_cell(call.get(name)) for name in sizes),
            Cell(str(call.get("what", "")), heads=True),
            *(number_cell(call.get(name), 3) for name in CALL_COLUMNS),
        ]
        for call in calls
    ]
    return table_without_empty(heads, rows)


def printed_table(results: Results) -> PageTable | None:
    """Return a table of the figures printed in a source report, beside times measured here."""
    rows = []
    for figure in objects(results.content.get("printed")):
        point = figure.get("point")
        point = point if isinstance(point, dict) else {}
        at = (row.measurement for row in results.rows if point.items() <= row.leading.items())
        here = next((row for row in at if row.implementation == figure.get("ours")), None)
        measured = here.total_ms.median if here and here.ok and here.total_ms else None
        rows.append(
            [
                Cell(str(figure.get("what", ""))),
                Cell(", ".join(f"{name} = {value}" for name, value in point.items())),
                Cell(str(figure.get("hardware", ""))),
                number_cell(figure.get("milliseconds")),
                Cell(str(figure.get("ours", ""))),
                number_cell(measured) if measured is not None else Cell("not measured"),
            ]
        )
    if not rows:
        return None
    heads = ("what", "sizes", "the report's hardware", "printed ms", "row here", "total ms here")
    return table_without_empty(heads, rows)
