"""Summary of a sweep: the fastest at the largest size, and failed rows with their reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.crossings import Verdict, verdict
from opencl_lab.lab.engine.row import Measurement, Series, Side
from opencl_lab.lab.report.documents import Sweep

SHOWN_SIZES = 4  # largest number of sizes that are listed; more are given as a range
FEWEST_RUNS = 4  # of each row, so that equal speeds are called different in under 5 % of cases
MOST_TROUBLES = 20
SIDES: tuple[Side, ...] = ("host", "device")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def summary_of(sweep: Sweep) -> list[str]:
    """Return sentences about limits of the ratios: too few runs, or no correct result."""
    timed = [row.total_ms for _, rows in sweep.series for row in rows if row.ok and row.total_ms]
    if not timed:
        return ["Nothing was measured with a correct result."]
    fewest = min(times.runs for times in timed)
    if fewest >= FEWEST_RUNS:
        return []
    text = f"Some rows have only {counted(fewest, 'run')}, so that their noise is hardly known"
    return [f"{text}: small differences may be chance."]


def standings_of(sweep: Sweep) -> list[Verdict]:
    """Return the verdicts on the fastest OpenCL row and the fastest other at the largest size.

    There is a verdict for each side of the data on which both were measured.
    """
    found: list[Verdict] = []
    for side in SIDES:
        last = next((x for _, rows in reversed(sweep.series) if (x := ranked(rows, side))), [])
        ours = next((row.total_ms for row in last if row.kind == "opencl"), None)
        other = next((row.total_ms for row in last if row.kind != "opencl"), None)
        if ours is not None and other is not None:
            found.append(verdict(ours, other))
    return found


def ranked(rows: Sequence[Measurement], side: Side) -> list[Measurement]:
    """Return the correct rows with data on one side, the fastest first."""
    correct = [row for row in rows if row.ok and row.total_ms is not None and row.data == side]
    return sorted(correct, key=milliseconds)


def milliseconds(row: Measurement) -> float:
    """Return the median of the total time of a row that has one."""
    assert row.total_ms is not None  # as for all rows of `ranked`
    return row.total_ms.median


def by_speed(series: Series) -> list[str]:
    """Return the implementations that ran, by largest size, then by their times there."""
    found: dict[str, tuple[int, float]] = {}
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None:
                found[row.implementation] = (-size, row.total_ms.median)
    return sorted(found, key=lambda name: found[name])


@dataclass(frozen=True)
class Trouble:
    """A sentence about rows that failed, or (if not `failed`) could not be measured."""

    text: str
    failed: bool


def troubles_of(sweep: Sweep) -> list[Trouble]:
    """Return sentences about rows without correct results, each reason once with its sizes."""
    found: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for size, rows in sweep.series:
        for row in rows:
            if not row.ok:
                key = row.implementation, row.status, NUMBER.sub("#", row.reason)
                found.setdefault(key, []).append((size, row.reason))
    troubles = []
    for (name, status, _), items in found.items():
        sizes = sorted({size for size, _ in items})
        where = f" at {sweep.axis} = {_listed(sizes)}" if len(sizes) < len(sweep.series) else ""
        what = "was not measured" if status == "unavailable" else f"failed ({status})"
        reason = _one_reason([text for _, text in items])
        text = f"{name} {what}{where}" + (f": {reason}" if reason else "")
        troubles.append(Trouble(text, status != "unavailable"))
    rest = troubles[MOST_TROUBLES:]
    if rest:
        said = f"and {len(rest)} more; see the table"
        troubles[MOST_TROUBLES:] = [Trouble(said, any(item.failed for item in rest))]
    return troubles


def _one_reason(reasons: Sequence[str]) -> str:
    """Return reasons that differ only in numbers as one, with a range for each number."""
    first, last = (NUMBER.findall(reasons[index]) for index in (0, -1))
    spans = (a if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True))
    return NUMBER.sub(lambda _: next(spans), reasons[0])


def _listed(sizes: Sequence[int]) -> str:
    """Return sizes as text; many as a range."""
    if len(sizes) > SHOWN_SIZES:
        return f"{sizes[0]:,} to {sizes[-1]:,}"
    *some, last = (f"{size:,}" for size in sizes)
    return f"{', '.join(some)} and {last}" if some else last
