"""A comparison over a range of sizes, with crossover points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from opencl_lab.comparison.measure import Measurement

__all__ = ["Crossover", "crossovers"]


@dataclass(frozen=True)
class Crossover:
    """From which size on one implementation is faster than another.

    `size` is interpolated between measured sizes on logarithmic scales; None
    says that it is slower at the largest size measured, and a `size` equal to
    the smallest one measured that it is faster throughout.
    """

    implementation: str
    reference: str
    size: float | None

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.implementation} stays slower than {self.reference}"
        return f"{self.implementation} is faster than {self.reference} from {self.size:.3g} on"


def crossovers(series: Sequence[tuple[int, Sequence[Measurement]]]) -> list[Crossover]:
    """Return the crossover of every OpenCL algorithm with every other implementation."""
    times: dict[str, dict[int, float]] = {}
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None and row.total_ms.median > 0:
                times.setdefault(row.implementation, {})[size] = row.total_ms.median
    ours = [name for name in times if name.startswith("opencl:")]
    found = []
    for name in ours:
        for other in times:
            ratios = [
                (size, times[name][size] / times[other][size])
                for size in sorted(set(times[name]) & set(times[other]))
            ]
            if other not in ours and ratios:
                found.append(Crossover(name, other, _crossing(ratios)))
    return found


def _crossing(ratios: Sequence[tuple[int, float]]) -> float | None:
    """Return where the ratio falls below 1 for good."""
    if ratios[-1][1] >= 1:
        return None
    for (low, above), (high, below) in reversed(list(pairwise(ratios))):
        if above >= 1:
            share = math.log(above) / (math.log(above) - math.log(below)) if above > 1 else 0.0
            return float(low * (high / low) ** share)
    return float(ratios[0][0])
