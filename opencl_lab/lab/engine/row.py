"""The row: what one measured implementation is, in every table, plot, document and answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from opencl_lab.core.plan import Work
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times

Status: TypeAlias = Literal[
    "correct", "correctness", "compile", "runtime", "timeout", "constraints", "unavailable"
]

BASELINE = "c:seq"
"""What speed-ups are over unless somebody names another row."""

Side: TypeAlias = Literal["host", "device"]
"""Where the data are, before and after."""


@dataclass(frozen=True)
class Measurement:
    """One implementation on one problem.

    Parameters
    ----------
    implementation : str
        Name of the row, such as ``"opencl:odd-even-merge"`` or ``"c:seq"``.
    kind : str
        ``opencl``, ``c``, ``mpi`` or ``library``.
    algorithm : str
    config : mapping
        Kernel parameters; empty for references.
    threads : int
        Threads that it may use; 1 for sequential code and for OpenCL.
    workers : int
        What efficiency divides by: threads, ranks, or the device's compute units.
    status : str
        ``correct``, or what went wrong.
    reason : str
        What went wrong, as a sentence.
    kernel_ms, transfer_ms : float, optional
        Medians of the time in kernels and in copies, from events; OpenCL only. They are of runs
        of their own, since events slow down the calls that `total_ms` is about.
    kernel_times : Times, optional
        `kernel_ms` with its spread, a time for each round of a comparison.
    total_ms : Times, optional
        Host clock, of one of several calls in a row: from arrays where `data` says to a result
        there.
    build_ms : float, optional
        Rendering and building, and what the first run took beyond a later one.
    data : str
        ``host`` or ``device``: where inputs and results are.
    calls : int
        Calls in a row. Each of the runs of `total_ms` is one row.
    note : str
        What is special about this call.
    work : Work, optional
        What rates are computed from.
    speedup : float, optional
        Total time of the `baseline` over this one's.
    baseline : str
        Name of the row that `speedup` is over.
    difference : Difference, optional
        Distance from the expected result.
    peak : float, optional
        Share of the roofline of the device, from its measured peaks and the kernel time;
        OpenCL only.
    peak_note : str
        Why that is above 1.
    """

    implementation: str
    kind: str
    algorithm: str
    status: Status = "correct"
    reason: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    workers: int = 1
    kernel_ms: float | None = None
    kernel_times: Times | None = None
    transfer_ms: float | None = None
    total_ms: Times | None = None
    build_ms: float | None = None
    work: Work | None = None
    speedup: float | None = None
    baseline: str = BASELINE
    difference: Difference | None = None
    peak: float | None = None
    peak_note: str = ""
    data: Side = "host"
    calls: int = 1
    note: str = ""

    @property
    def label(self) -> str:
        """Its name, and its threads or ranks where there are several."""
        workers = f" x{self.threads}"
        named = self.threads <= 1 or self.implementation.endswith(workers)
        return self.implementation if named else self.implementation + workers

    @property
    def ok(self) -> bool:
        """Whether it ran and its result was right."""
        return self.status == "correct"

    @property
    def efficiency(self) -> float | None:
        """Speed-up over workers."""
        return None if self.speedup is None else self.speedup / self.workers

    def _rate(self, amount: float) -> float | None:
        """Return `amount` over the total time, which all kinds of rows have."""
        if self.total_ms is None or not self.total_ms.median or not amount:
            return None
        return amount / self.total_ms.median * 1e-6

    @property
    def gflops(self) -> float | None:
        """Needed arithmetic per total time in GFLOP/s."""
        return None if self.work is None else self._rate(self.work.flops)

    @property
    def gbps(self) -> float | None:
        """Needed memory traffic per total time in GB/s."""
        return None if self.work is None else self._rate(self.work.bytes)

    @property
    def throughput(self) -> float | None:
        """What people count of this problem, per second: see `throughput_unit`."""
        if self.work is None:
            return None
        for amount, factor in (
            (self.work.items, 1e9),
            (self.work.flops, 1.0),
            (self.work.bytes, 1.0),
        ):
            if amount:
                rate = self._rate(amount)
                return None if rate is None else rate * factor
        return None

    @property
    def throughput_unit(self) -> str:
        """Items per second where the problem counts items, else GFLOP/s, else GB/s."""
        if self.work is None:
            return ""
        if self.work.items:
            return f"{self.work.item}/s"
        return "GFLOP/s" if self.work.flops else "GB/s"

    def against(self, baseline: Measurement | None) -> Measurement:
        """Return a copy with the speed-up over `baseline`."""
        if baseline is None or baseline.total_ms is None or self.total_ms is None:
            return self
        if self.data != baseline.data:  # what brings data to the device is in one of them only
            return self
        if not (self.ok and baseline.ok and self.total_ms.median):
            return self
        ratio = baseline.total_ms.median / self.total_ms.median
        return replace(self, speedup=ratio, baseline=baseline.implementation)

    def as_row(self) -> dict[str, Any]:
        """Return the row of the JSON document ``oclab/1``."""
        of = self.difference
        return {
            "implementation": self.implementation,
            "kind": self.kind,
            "algorithm": self.algorithm,
            "data": self.data,
            "config": dict(self.config),
            "threads": self.threads,
            "workers": self.workers,
            "status": self.status,
            "reason": self.reason,
            "note": self.note,
            "kernel_ms": self.kernel_ms,
            "kernel_times": None if self.kernel_times is None else self.kernel_times.as_dict(),
            "transfer_ms": self.transfer_ms,
            "total_ms": None if self.total_ms is None else self.total_ms.as_dict(),
            "calls": self.calls,
            "build_ms": self.build_ms,
            "gflops": self.gflops,
            "gbps": self.gbps,
            "peak_fraction": self.peak,
            "peak_note": self.peak_note,
            "speedup": self.speedup,
            "baseline": self.baseline,
            "efficiency": self.efficiency,
            "max_abs_diff": None if of is None else _finite(of.max_abs),
            "max_rel_diff": None if of is None else _finite(of.max_rel),
            "rel_l2_diff": None if of is None else _finite(of.rel_l2),
            "error_over_bound": None if of is None else _finite(of.error_over_bound),
            "ok": self.ok,
        }

    def as_csv(self) -> dict[str, Any]:
        """Return the same row flat: medians as ``total_ms`` and ``kernel_ms``, and their spread."""
        row = self.as_row()
        flat = {**row, "config": json.dumps(row["config"])}
        for name, times in (("kernel_ms", "kernel_times"), ("total_ms", "total_ms")):
            found = row[times] or {}
            flat.update({f"{name}_{part}": found.get(part) for part in ("min", "max", "runs")})
        flat["total_ms"] = (row["total_ms"] or {}).get("median")
        return {column: flat[column] for column in COLUMNS}


COLUMNS = (
    *("implementation", "kind", "algorithm", "data", "config", "threads", "workers"),
    *("status", "reason", "note"),
    *("kernel_ms", "kernel_ms_min", "kernel_ms_max", "kernel_ms_runs", "transfer_ms"),
    *("total_ms", "total_ms_min", "total_ms_max", "total_ms_runs", "calls", "build_ms"),
    *("gflops", "gbps", "peak_fraction", "peak_note", "speedup", "baseline", "efficiency"),
    *("max_abs_diff", "max_rel_diff", "rel_l2_diff", "error_over_bound", "ok"),
)
"""Columns of a CSV file, in order."""


def over_baseline(rows: Sequence[Measurement], name: str | None) -> list[Measurement]:
    """Return rows with their speed-ups over the row of this name, by default sequential C."""
    wanted = name or BASELINE
    base = next((row for row in rows if row.implementation == wanted), None)
    return [replace(row, speedup=None, baseline=wanted).against(base) for row in rows]


def exit_status(rows: Sequence[Measurement]) -> int:
    """Return 0 when all is right, 4 when a kernel did not build or run, 1 for a wrong result."""
    failed = {row.status for row in rows if row.kind == "opencl"}
    if failed & {"compile", "runtime", "timeout"}:
        return 4
    if failed & {"constraints"}:
        return 2
    return 1 if any(row.status in ("correctness", "runtime") for row in rows) else 0


def first_failure(points: Iterable[Sequence[Measurement]]) -> int:
    """Return the exit status of the first point that was not all right; 0 if all were."""
    return next(filter(None, map(exit_status, points)), 0)


def _finite(value: float | None) -> float | None:
    """JSON knows no infinity and no NaN; a difference that is none is no number."""
    return value if value is not None and math.isfinite(value) else None
