"""The baselines of speed-ups in tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from opencl_lab.lab.engine.row import BASELINE, Measurement, over_baseline

Series: TypeAlias = Sequence[tuple[int, Sequence[Measurement]]]
"""Sizes, each with its measured rows."""

ONE_WORKER = "one worker"
"""Name of the baseline of speed-ups by workers."""


def with_base(series: Series) -> tuple[Series, list[str]]:
    """Return rows with the speed-ups of tables and plots, and the names of their baselines.

    If no row has a speed-up, the first reference with a correct result becomes the baseline, or
    the first algorithm if there is no such reference. Data on the host and on the device have
    separate baselines. There is none if there is only one implementation.
    """
    bases: list[str] = []
    for side in ("host", "device"):
        right = [[row for row in items if row.data == side and row.ok] for _, items in series]
        found = list(dict.fromkeys(r.baseline for rows in right for r in rows if r.speedup))
        fallback = None if found else _fallback(right)
        if fallback is not None:
            found = [fallback]
            series = [(size, _of_side(items, side, fallback)) for size, items in series]
        bases += found
    return series, list(dict.fromkeys(bases))


def _fallback(right: Sequence[Sequence[Measurement]]) -> str | None:
    """Return the implementation that replaces the baseline; None if all rows are alone."""
    timed = ([row for row in rows if row.total_ms and row.total_ms.median] for rows in right)
    kinds = {row.implementation: row.kind for rows in timed if len(rows) > 1 for row in rows}
    return min(kinds, key=lambda name: (name != BASELINE, kinds[name] == "opencl"), default=None)


def _of_side(rows: Sequence[Measurement], side: str, base: str) -> Sequence[Measurement]:
    """Return all rows, those of one side with speed-ups over a base."""
    over = iter(over_baseline([row for row in rows if row.data == side], base))
    return [next(over) if row.data == side else row for row in rows]


def by_workers(rows: Sequence[Measurement]) -> list[tuple[int, list[Measurement]]]:
    """Return the rows of references that ran with one and with several workers, by workers.

    Their speed-ups are over the same reference with one worker.
    """
    right = [row for row in rows if row.kind != "opencl" and row.ok and row.total_ms]
    ones = {row.algorithm: row for row in right if row.workers == 1}
    several = {row.algorithm for row in right if row.workers > 1} & ones.keys()
    found: dict[int, list[Measurement]] = {}
    for row in right:
        if row.algorithm in several:
            named = replace(row, implementation=row.algorithm).against(ones[row.algorithm])
            found.setdefault(row.workers, []).append(named)
    return sorted(found.items())
