"""The same sweep on several devices: a plot with a line for each, and a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from opencl_lab.lab.engine.row import Measurement, Side
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.presentation.lines import Series
from opencl_lab.lab.presentation.plots import plot_times
from opencl_lab.lab.report.cells import Cell, PageTable, number_cell, table_without_empty
from opencl_lab.lab.report.environment import device_text
from opencl_lab.lab.report.figures import thinned, tips_of
from opencl_lab.lab.report.summary import SIDES, ranked
from opencl_lab.lab.report.svg import Figure, figure_of
from opencl_lab.lab.report.sweeps import Sweep, sweeps_of

FASTEST = "opencl (the fastest)"


@dataclass(frozen=True)
class Across:
    """A sweep on several devices, by the names of the devices."""

    sweeps: Mapping[str, Sweep]

    @property
    def sweep(self) -> Sweep:
        """The sweep on the first device, for properties that all share."""
        return next(iter(self.sweeps.values()))

    @cached_property
    def series(self) -> Series:
        """The fastest OpenCL row by size, named by device and side of the data."""
        joined: dict[int, list[Measurement]] = {}
        for device, sweep in self.sweeps.items():
            for side in SIDES:
                for size, row in _fastest(sweep, side).items():
                    name = f"opencl:{device}" + "@device" * (side == "device")
                    joined.setdefault(size, []).append(replace(row, implementation=name))
        return sorted(joined.items())

    def figures(self, prefix: str) -> list[Figure]:
        """Draw the time of the fastest OpenCL row; a line for each device and side of the data."""
        if not self.sweep.varied or not self.series:
            return []
        series, remark = thinned(self.series)
        there = any(row.data == "device" for _, rows in series for row in rows)
        axis = self.sweep.axis
        draw = partial(plot_times, series=series, size_name=axis, title="")
        caption = "The fastest OpenCL algorithm on each device"
        caption += "; dashed: with the data on the device" * there
        caption += f" ({remark})" * bool(remark)
        return [figure_of(draw, f"{prefix}-devices", tips_of(series, axis), caption)]

    @property
    def table(self) -> PageTable:
        """Total times by size and implementation, with a column for each device.

        Rows of a single device are left out, unless all rows are such.
        """
        found: dict[tuple[int, str, str], dict[str, Measurement]] = {}
        for device, sweep in self.sweeps.items():
            for size, rows in sweep.series:
                for row in rows:
                    key = (size, row.implementation, row.kind)
                    found.setdefault(key, {})[device] = row
            for side in SIDES:
                name = FASTEST + "@device" * (side == "device")
                for size, row in _fastest(sweep, side).items():
                    found.setdefault((size, name, "opencl"), {})[device] = row
        shared = {key: rows for key, rows in found.items() if len(rows) > 1}
        own = {key: rows for key, rows in found.items() if not key[1].startswith(FASTEST)}
        cells = [
            [
                *([Cell(f"{size:,}", size)] if self.sweep.varied else []),
                Cell(name, style=kind, heads=True),
                *(_time(rows.get(device)) for device in self.sweeps),
            ]
            for (size, name, kind), rows in sorted((shared or own).items(), key=_by_size)
        ]
        sizes = [self.sweep.axis] if self.sweep.varied else []
        heads = [*sizes, "implementation", *(f"{device}, ms" for device in self.sweeps)]
        caption = "Medians of the total time of a call."
        if len(shared) < len(own):
            caption += " Rows of a single device are in its chapter." * bool(shared)
        return table_without_empty(heads, cells, caption)


def across_devices(documents: Sequence[Results], names: Sequence[str] = ()) -> list[Across]:
    """Return the sweeps that ran on several devices; for each device the one of the last document.

    `names` has the name of the device of each document, by default as recorded.
    """
    groups: dict[str, dict[str, Sweep]] = {}
    for results, device in zip(documents, names or map(device_text, documents), strict=True):
        for sweep in sweeps_of(results) if device else []:
            key = json.dumps([sweep.title, sweep.varied, sweep.fixed], sort_keys=True, default=str)
            groups.setdefault(key, {})[device] = sweep
    return [Across(sweeps) for sweeps in groups.values() if len(sweeps) > 1]


def _fastest(sweep: Sweep, side: Side) -> dict[int, Measurement]:
    """Return the fastest correct OpenCL row by size, with data on one side."""
    found = {}
    for size, rows in sweep.series:
        opencl = [row for row in ranked(rows, side) if row.kind == "opencl"]
        if opencl:
            found[size] = opencl[0]
    return found


def _by_size(item: tuple[tuple[int, str, str], object]) -> tuple[int, bool]:
    """Return the sort key of a row of the table: by size, the fastest OpenCL row first."""
    (size, name, _), _ = item
    return size, not name.startswith(FASTEST)


def _time(row: Measurement | None) -> Cell:
    if row is None:
        return Cell("")
    if not row.ok or row.total_ms is None:
        return Cell(row.status, style="absent" if row.status == "unavailable" else "failed")
    return replace(number_cell(row.total_ms.median), tip=row.label)
