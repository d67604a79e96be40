"""The same sweep on several devices: one plot with a line for each, one table across them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.plots import plot_times
from opencl_lab.comparison.stored import Results
from opencl_lab.comparison.table import number
from opencl_lab.report.cells import Cell, PageTable, number_cell, table_without_empty
from opencl_lab.report.environment import device_text
from opencl_lab.report.figures import tips_of
from opencl_lab.report.summary import are_level
from opencl_lab.report.svg import Figure, figure_of
from opencl_lab.report.sweeps import Sweep, sweeps_of
from opencl_lab.report.thinning import thinned

__all__ = ["Across", "across_devices"]


@dataclass(frozen=True)
class Across:
    """One sweep on several devices, by the names of these."""

    sweeps: Mapping[str, Sweep]

    @property
    def sweep(self) -> Sweep:
        """One of them, for what all have in common."""
        return next(iter(self.sweeps.values()))

    @property
    def text(self) -> list[str]:
        """What the fastest of ours takes on each device, where all have the largest size."""
        common = set.intersection(*(set(rows) for rows in map(_fastest, self.sweeps.values())))
        if not common:
            return ["No size was measured on all of these devices."]
        size = max(common)
        found = [(_fastest(sweep)[size], device) for device, sweep in self.sweeps.items()]
        found.sort(key=lambda item: _milliseconds(item[0]))
        least = _milliseconds(found[0][0])
        where = f"At {self.sweep.axis} = {size:,}, " if self.sweep.varied else ""
        parts = []
        for index, (row, device) in enumerate(found):
            took = f"takes {number(_milliseconds(row), 3)} ms"
            if index and are_level(row, found[0][0]):
                took = "is level within noise"
            elif index and least:
                took = f"takes {number(_milliseconds(row) / least, 3)} times as long"
            parts.append(f"{device} {took} ({row.algorithm})")
        return [f"{where}{'; '.join(parts)}; each with the fastest algorithm there."]

    def figures(self, prefix: str) -> list[Figure]:
        """Draw the time of the fastest of ours, a line for each device."""
        if not self.sweep.varied:
            return []
        joined: dict[int, list[Measurement]] = {}
        for device, sweep in self.sweeps.items():
            for size, row in _fastest(sweep).items():
                named = replace(row, implementation=f"opencl:{device}")
                joined.setdefault(size, []).append(named)
        series, remark = thinned(sorted(joined.items()))
        if not series:
            return []
        axis = self.sweep.axis
        draw = partial(plot_times, series=series, size_name=axis, title="")
        caption = "The fastest OpenCL algorithm on each device" + (f" ({remark})" * bool(remark))
        return [figure_of(draw, f"{prefix}-devices", tips_of(series, axis), caption)]

    @property
    def table(self) -> PageTable:
        """Total times by size and implementation, a column for each device."""
        found: dict[tuple[int, str, str], dict[str, Measurement]] = {}
        for device, sweep in self.sweeps.items():
            for size, rows in sweep.series:
                for row in rows:
                    found.setdefault((size, row.label, row.kind), {})[device] = row
        cells = [
            [
                *([Cell(f"{size:,}", size)] if self.sweep.varied else []),
                Cell(name, style=kind),
                *(_time(rows.get(device)) for device in self.sweeps),
            ]
            for (size, name, kind), rows in sorted(found.items(), key=lambda item: item[0][0])
        ]
        sizes = [self.sweep.axis] if self.sweep.varied else []
        heads = [*sizes, "implementation", *(f"{device}, ms" for device in self.sweeps)]
        return table_without_empty(heads, cells, "Medians of the total time of a call.")


def across_devices(documents: Sequence[Results]) -> list[Across]:
    """Return the sweeps that were made on several devices; of one device the last document's."""
    groups: dict[str, dict[str, Sweep]] = {}
    for results in documents:
        device = device_text(results)
        for sweep in sweeps_of(results) if device else []:
            key = json.dumps([sweep.title, sweep.varied, sweep.fixed], sort_keys=True, default=str)
            groups.setdefault(key, {})[device] = sweep
    return [Across(sweeps) for sweeps in groups.values() if len(sweeps) > 1]


def _fastest(sweep: Sweep) -> dict[int, Measurement]:
    """Return the fastest right row of OpenCL by size, from data on the host."""
    found = {}
    for size, rows in sweep.series:
        ours = [row for row in rows if row.kind == "opencl" and row.ok and row.data == "host"]
        timed = [row for row in ours if row.total_ms is not None]
        if timed:
            found[size] = min(timed, key=_milliseconds)
    return found


def _milliseconds(row: Measurement) -> float:
    assert row.total_ms is not None  # all that are compared have times
    return row.total_ms.median


def _time(row: Measurement | None) -> Cell:
    if row is None:
        return Cell("")
    if not row.ok or row.total_ms is None:
        return Cell(row.status, style="absent" if row.status == "unavailable" else "failed")
    return number_cell(row.total_ms.median)
