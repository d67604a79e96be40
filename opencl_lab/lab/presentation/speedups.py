"""What speed-ups are over in tables and plots: the baseline, else what there is; or one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opencl_lab.lab.engine.row import BASELINE, Measurement, over_baseline
from opencl_lab.lab.presentation.lines import Series

ONE_WORKER = "one worker"
"""What speed-ups by workers are over."""


def with_base(series: Series) -> tuple[Series, list[str]]:
    """Return rows as tables and plots show them, and what their speed-ups are over.

    Where no row has a speed-up, these are over the first reference that gave a right result, or
    over the first algorithm where no reference did. Data on the host and on the device have each
    their own base. There is none where nothing can be compared with.
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
    return series, bases


def _fallback(right: Sequence[Sequence[Measurement]]) -> str | None:
    """Return the name of what stands in for the baseline; None if all rows are alone."""
    timed = ([row for row in rows if row.total_ms and row.total_ms.median] for rows in right)
    kinds = {row.implementation: row.kind for rows in timed if len(rows) > 1 for row in rows}
    return min(kinds, key=lambda name: (name != BASELINE, kinds[name] == "opencl"), default=None)


def _of_side(rows: Sequence[Measurement], side: str, base: str) -> Sequence[Measurement]:
    """Return all rows, those of one side with their speed-ups over a base."""
    over = iter(over_baseline([row for row in rows if row.data == side], base))
    return [next(over) if row.data == side else row for row in rows]


def by_workers(rows: Sequence[Measurement]) -> list[tuple[int, list[Measurement]]]:
    """Return by workers the references that ran with one and with several, with their speed-up.

    That is over one worker of the same code.
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
