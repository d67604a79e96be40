"""Speed-ups: over a baseline, over one worker, over the fewest ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opencl_lab.lab.engine.row import BASELINE, Measurement, Series

ONE_WORKER = "one worker"
"""Name of the baseline of speed-ups by workers."""


def over_baseline(rows: Sequence[Measurement], name: str | None) -> list[Measurement]:
    """Return rows with their speed-ups over the implementation `name`, by default `BASELINE`."""
    baseline = name or BASELINE
    base = next((row for row in rows if row.implementation == baseline), None)
    return [replace(row, speedup=None, baseline=baseline).against(base) for row in rows]


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


def over_ranks(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return the correct rows over ranks of MPI, the fewest ranks first."""
    found = [row for row in rows if row.ok and row.over_ranks is not None and row.total_ms]
    return sorted(found, key=lambda row: row.workers)


def over_fewest_ranks(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return rows with speed-ups over the row of the fewest ranks.

    Of larger problems, as in weak scaling, rates are compared.
    """
    able = over_ranks(rows)
    return [_over(able[0], row) for row in rows] if able else list(rows)


def _over(base: Measurement, row: Measurement) -> Measurement:
    if not (row.ok and row.total_ms and base.total_ms):
        return row
    growth = _amount(row) / _amount(base) if _amount(base) else 1.0
    speedup = growth * base.total_ms.median / row.total_ms.median
    shares = row.over_ranks and replace(row.over_ranks, base_ranks=base.workers)
    return replace(row, speedup=speedup, baseline=base.implementation, over_ranks=shares)


def _amount(row: Measurement) -> float:
    return 0.0 if row.work is None else row.work.flops or row.work.bytes
