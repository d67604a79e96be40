"""What of very many rows is drawn, so that plots stay readable and pages fast; tables have all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.presentation.lines import Series

MOST_BARS, MOST_LINES, MOST_SIZES = 30, 16, 48


def thinned(series: Series) -> tuple[Series, str]:
    """Return as much of a sweep, the smallest size first, as a plot can show; say what is left out.

    Sizes are spread evenly on a logarithmic axis, the first and the last among them, and the
    implementations are those that are fastest at the largest sizes where they ran.
    """
    names = _ranked(series)
    sizes = _spread([size for size, _ in series])
    remarks = []
    if len(sizes) < len(series):
        remarks.append(f"{len(sizes)} of {len(series):,} sizes")
    if len(names) > MOST_LINES:
        remarks.append(f"the {MOST_LINES} fastest of {len(names):,} implementations")
    if not remarks:
        return series, ""
    wanted, kept = set(names[:MOST_LINES]), set(sizes)
    shown = [
        (size, [row for row in rows if row.implementation in wanted])
        for size, rows in series
        if size in kept
    ]
    return shown, " and ".join(remarks)


def _ranked(series: Series) -> list[str]:
    """Return the implementations that ran, those first that are fast where the most was asked."""
    found: dict[str, tuple[int, float]] = {}
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None:
                found[row.implementation] = (-size, row.total_ms.median)
    return sorted(found, key=lambda name: found[name])


def _spread(sizes: Sequence[int]) -> list[int]:
    """Return `MOST_SIZES` sizes at most, evenly on a logarithmic axis."""
    if len(sizes) <= MOST_SIZES:
        return list(sizes)
    low, high = math.log(max(sizes[0], 1)), math.log(sizes[-1])
    kept: dict[int, int] = {}
    for size in sizes:
        share = (math.log(max(size, 1)) - low) / (high - low)
        kept[round(share * (MOST_SIZES - 2))] = size  # the largest of those at one place
    return sorted({sizes[0], *kept.values()})


def fastest_rows(rows: Sequence[Measurement]) -> tuple[list[Measurement], str]:
    """Return as many rows as a diagram has room for bars, the fastest, and what was left out."""
    timed = [row for row in rows if row.total_ms is not None]
    timed.sort(key=lambda row: row.total_ms.median if row.total_ms else math.inf)
    remark = f"the {MOST_BARS} fastest of {len(timed):,} rows" if len(timed) > MOST_BARS else ""
    return timed[:MOST_BARS], remark
