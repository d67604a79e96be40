"""The same sweep on several devices: the fastest OpenCL row on each, by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.presentation.table import Cell, CellTable
from opencl_lab.lab.report.documents import Sweep, sweeps_of
from opencl_lab.lab.report.environment import device_text
from opencl_lab.lab.report.ratios import by_size, time_cell
from opencl_lab.lab.report.summary import SIDES, ranked


@dataclass(frozen=True)
class Across:
    """A sweep on several devices, by the names of the devices."""

    sweeps: Mapping[str, Sweep]

    @property
    def sweep(self) -> Sweep:
        """The sweep on the first device, for properties that all share."""
        return next(iter(self.sweeps.values()))

    @property
    def series(self) -> Series:
        """The fastest OpenCL row by size, named by device and side of the data."""
        joined: dict[int, list[Measurement]] = {}
        for device, sweep in self.sweeps.items():
            for size, rows in sweep.series:
                for side in SIDES:
                    ours = [row for row in ranked(rows, side) if row.kind == "opencl"]
                    name = f"opencl:{device}" + "@device" * (side == "device")
                    joined.setdefault(size, []).extend(
                        replace(row, implementation=name) for row in ours[:1]
                    )
        return sorted(joined.items())

    @property
    def table(self) -> CellTable:
        """The medians of `series` at a few of the sizes that several devices share."""
        found: dict[str, dict[int, Cell]] = {}
        shared = [(size, rows) for size, rows in self.series if len(rows) > 1]
        for size, rows in shared or self.series:
            for row in rows:
                found.setdefault(row.implementation, {})[size] = time_cell(row)
        axis = self.sweep.axis
        made = by_size(list(found.items()), f"{axis}, ms" if axis else "")
        return made or CellTable((), ())


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
