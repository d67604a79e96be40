"""What speed-ups are over: sequential C, or the row that a user names; else what there is."""

from __future__ import annotations

from collections.abc import Sequence

from opencl_lab.comparison.lines import Series
from opencl_lab.comparison.measure import BASELINE, Measurement

__all__ = ["over_baseline", "with_base"]


def over_baseline(rows: Sequence[Measurement], name: str | None) -> list[Measurement]:
    """Return rows with their speed-ups over the row of this name, by default sequential C."""
    wanted = name or BASELINE
    base = next((row for row in rows if row.implementation == wanted), None)
    return [row.against(base) for row in rows]


def with_base(series: Series) -> tuple[Series, list[str]]:
    """Return rows as tables and plots show them, and what their speed-ups are over.

    Where no row has a speed-up, these are over the first reference that gave a right result, or
    over the first algorithm where no reference did. Data on the host and on the device have each
    their own base.

    Parameters
    ----------
    series : sequence of (int, sequence of Measurement)
        The rows by size.

    Returns
    -------
    series : sequence of (int, sequence of Measurement)
    bases : list of str
        Names of rows; empty where there is nothing to compare with.
    """
    bases: list[str] = []
    for side in ("host", "device"):
        rows = [row for _, items in series for row in items if row.data == side and row.ok]
        found = list(dict.fromkeys(row.baseline for row in rows if row.speedup is not None))
        fallback = None if found else _fallback(rows)
        if fallback is not None:
            found = [fallback]
            series = [(size, _of_side(items, side, fallback)) for size, items in series]
        bases += found
    return series, bases


def _fallback(rows: Sequence[Measurement]) -> str | None:
    """Return the name of what stands in for the baseline; None for a row that is alone."""
    kinds = {row.implementation: row.kind for row in rows if row.total_ms and row.total_ms.median}
    if len(kinds) < 2:
        return None
    return min(kinds, key=lambda name: (name != BASELINE, kinds[name] == "opencl"))


def _of_side(rows: Sequence[Measurement], side: str, base: str) -> Sequence[Measurement]:
    """Return all rows, those of one side with their speed-ups over a base."""
    over = iter(over_baseline([row for row in rows if row.data == side], base))
    return [next(over) if row.data == side else row for row in rows]
