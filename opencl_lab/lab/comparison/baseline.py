"""What speed-ups are over: sequential C, or the row that a user names; else what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.comparison.lines import Series
from opencl_lab.lab.comparison.measure import BASELINE, Measurement

__all__ = ["check_baseline", "over_baseline", "with_base"]


def check_baseline(name: str, names: Sequence[str]) -> None:
    """Check that speed-ups can be over a row of this name.

    Raises
    ------
    InvalidConfig
        If it is none of the `names` of the rows.
    """
    if name not in names:
        raise InvalidConfig(
            f"{name} is not measured here, so it is no baseline; there are: {', '.join(names)}"
        )


def over_baseline(rows: Sequence[Measurement], name: str | None) -> list[Measurement]:
    """Return rows with their speed-ups over the row of this name, by default sequential C."""
    wanted = name or BASELINE
    base = next((row for row in rows if row.implementation == wanted), None)
    return [replace(row, speedup=None, baseline=wanted).against(base) for row in rows]


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
