"""The row of a measured implementation, for tables, plots, documents and answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from opencl_lab.core.plan import Work
from opencl_lab.core.records import Count, Finite, Natural
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times

Status: TypeAlias = Literal[
    "correct", "correctness", "compile", "runtime", "timeout", "constraints", "unavailable"
]

BASELINE = "c:seq"
"""The default baseline of speed-ups."""
OVER_RANKS = "mpi:opencl"
"""The name of our rows over ranks, beside kind ``opencl``."""

Side: TypeAlias = Literal["host", "device"]
"""Where inputs and results are."""
Series: TypeAlias = "Sequence[tuple[int, Sequence[Measurement]]]"
"""Sizes, each with its measured rows."""


@dataclass(frozen=True)
class OverRanks:
    """Where the time of a call over ranks of MPI goes."""

    compute: Finite  # this and the next two are fractions of the time of all ranks
    communication: Finite
    waiting: Finite
    imbalance: Finite  # by how much the longest compute exceeds the mean, as a fraction
    base_ranks: Count = 1  # ranks of the row that speed-up and efficiency are relative to


@dataclass(frozen=True)
class Measurement:
    """One implementation on one problem. Times of kernels and copies are medians of events.

    They come from other runs than `total_ms`, since events slow down calls.
    """

    implementation: str  # the name of the row, such as "opencl:odd-even-merge" or "c:seq"
    kind: str  # opencl, c, mpi or library
    algorithm: str
    status: Status = "correct"
    reason: str = ""  # what went wrong, as a sentence
    config: Mapping[str, Any] = field(default_factory=dict)  # kernel parameters
    threads: Count = 1  # number that it may use; 1 for OpenCL
    workers: Natural = 1  # divisor of the efficiency: threads, ranks, or compute units
    kernel_ms: Finite | None = None
    kernel_times: Times | None = None  # with their spread; one time for each round
    transfer_ms: Finite | None = None
    total_ms: Times | None = None
    """Time per call of back-to-back calls, with arrays and results on the side `data`."""
    build_ms: Finite | None = None  # the first run's time less that of a later one
    work: Work | None = None  # from which rates are computed
    speedup: Finite | None = None  # the total time of the `baseline` divided by this one's
    baseline: str = BASELINE
    difference: Difference | None = None  # from the expected result
    peak: float | None = None  # fraction of the device's roofline, by the kernel time
    peak_note: str = ""  # why it is above 1
    data: Side = "host"
    calls: Count = 1  # per sample; each of the runs of `total_ms` is one sample
    note: str = ""  # a remark on this implementation
    over_ranks: OverRanks | None = None

    @property
    def label(self) -> str:
        """Its name, with the number of threads or ranks if there are several."""
        workers = f" x{self.threads}"
        named = self.threads <= 1 or self.implementation.endswith(workers)
        return self.implementation if named else self.implementation + workers

    @property
    def ok(self) -> bool:
        """Whether it ran and its result was correct."""
        return self.status == "correct"

    @property
    def efficiency(self) -> float | None:
        """Speed-up over workers; of ranks, over how many times as many there are."""
        base = 1 if self.over_ranks is None else self.over_ranks.base_ranks
        return None if self.speedup is None else self.speedup * base / self.workers

    def _rate(self, amount: float) -> float | None:
        """Return `amount` per total time, which all kinds of rows have."""
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
        """Throughput in the `throughput_unit`."""
        if self.work is None or not self.work.items:
            return self.gflops if self.work and self.work.flops else self.gbps
        rate = self._rate(self.work.items)
        return None if rate is None else rate * 1e9

    @property
    def throughput_unit(self) -> str:
        """Items per second if the problem counts items, else GFLOP/s, else GB/s."""
        if self.work is None:
            return ""
        if self.work.items:
            return f"{self.work.item}/s"
        return "GFLOP/s" if self.work.flops else "GB/s"

    def against(self, baseline: Measurement | None) -> Measurement:
        """Return a copy with the speed-up over `baseline`."""
        if baseline is None or baseline.total_ms is None or self.total_ms is None:
            return self
        same_side = self.data == baseline.data  # else one of them copies data to the device
        if not (same_side and self.ok and baseline.ok and self.total_ms.median):
            return self
        ratio = baseline.total_ms.median / self.total_ms.median
        return replace(self, speedup=ratio, baseline=baseline.implementation)

    def as_row(self) -> dict[str, Any]:
        """Return the row of the JSON document ``oclab/1``."""
        of = self.difference
        own: dict[str, Any] = {
            "config": dict(self.config),
            "kernel_times": self.kernel_times and self.kernel_times.as_dict(),
            "total_ms": self.total_ms and self.total_ms.as_dict(),
            "peak_fraction": self.peak,
            "over_ranks": self.over_ranks and dict(vars(self.over_ranks)),
            "max_abs_diff": of and _finite(of.max_abs),
            "max_rel_diff": of and _finite(of.max_rel),
            "rel_l2_diff": of and _finite(of.rel_l2),
            "error_over_bound": of and _finite(of.error_over_bound),
        }
        return {name: own[name] if name in own else getattr(self, name) for name in ROW}

    def as_csv(self) -> dict[str, Any]:
        """Return the same row flat: medians as ``total_ms`` and ``kernel_ms``, and their spread."""
        row = self.as_row()
        flat = {**row, "config": json.dumps(row["config"])}
        for name, times in (("kernel_ms", "kernel_times"), ("total_ms", "total_ms")):
            found = row[times] or {}
            flat.update({f"{name}_{part}": found.get(part) for part in ("min", "max", "runs")})
        flat["total_ms"] = (row["total_ms"] or {}).get("median")
        shares = row["over_ranks"] or {}
        flat.update({column: shares.get(name) for column, name in RANK_COLUMNS.items()})
        return {column: flat[column] for column in COLUMNS}


ROW = (
    *("implementation", "kind", "algorithm", "data", "config", "threads", "workers", "status"),
    *("reason", "note", "kernel_ms", "kernel_times", "transfer_ms", "total_ms", "calls"),
    *("build_ms", "gflops", "gbps", "peak_fraction", "peak_note", "speedup", "baseline"),
    *("efficiency", "over_ranks", "max_abs_diff", "max_rel_diff", "rel_l2_diff"),
    *("error_over_bound", "ok"),
)
"""Names of the values in a row of a document, in order."""

RANK_COLUMNS = {
    "compute_share": "compute",
    "communication_share": "communication",
    "waiting_share": "waiting",
    "imbalance": "imbalance",
}
"""Columns of a CSV file that only rows over ranks fill, with their names in `OverRanks`."""

COLUMNS = (
    *("implementation", "kind", "algorithm", "data", "config", "threads", "workers"),
    *("status", "reason", "note"),
    *("kernel_ms", "kernel_ms_min", "kernel_ms_max", "kernel_ms_runs", "transfer_ms"),
    *("total_ms", "total_ms_min", "total_ms_max", "total_ms_runs", "calls", "build_ms"),
    *("gflops", "gbps", "peak_fraction", "peak_note", "speedup", "baseline", "efficiency"),
    *RANK_COLUMNS,
    *("max_abs_diff", "max_rel_diff", "rel_l2_diff", "error_over_bound", "ok"),
)
"""Columns of a CSV file, in order."""


def exit_status(rows: Sequence[Measurement]) -> int:
    """Return 0 if our rows are correct, 4 if a kernel failed, 1 for a wrong result of ours."""
    failed = {row.status for row in rows if row.kind == "opencl"}
    if failed & {"compile", "runtime", "timeout"}:
        return 4
    if failed & {"constraints"}:
        return 2
    failed |= {row.status for row in rows if row.algorithm == OVER_RANKS}
    return 1 if failed & {"correctness", "runtime"} else 0


def first_failure(points: Iterable[Sequence[Measurement]]) -> int:
    """Return the exit status of the first point with a failure; 0 if there is none."""
    return next(filter(None, map(exit_status, points)), 0)


def _finite(value: float | None) -> float | None:
    """Return a value for JSON, which has no infinity and no NaN."""
    return value if value is not None and math.isfinite(value) else None
