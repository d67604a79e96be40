"""What more threads or ranks bring: references beside the same code with one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opencl_lab.lab.comparison.measure import Measurement

__all__ = ["ONE_WORKER", "by_workers"]

ONE_WORKER = "one worker"
"""What speed-ups by workers are over."""


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
