"""A comparison over a range of sizes, with crossover points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

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
        return f"{self.implementation} is faster than {self.reference} from {self.size_text} on"

    @property
    def size_text(self) -> str:
        """The size in three digits, as it was interpolated."""
        return "" if self.size is None else f"{float(f'{self.size:.3g}'):.7g}"


def crossovers(series: Sequence[tuple[int, Sequence[Measurement]]]) -> list[Crossover]:
    """Return the crossovers of OpenCL algorithms with each other, and with all references.

    Of two algorithms the one that is faster at the largest size is named first; variants
    of one algorithm are not set against each other.
    """
    times: dict[str, dict[int, float]] = {}
    algorithms: dict[str, str] = {}
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None and row.total_ms.median > 0:
                times.setdefault(row.implementation, {})[size] = row.total_ms.median
                if row.kind == "opencl":
                    algorithms[row.implementation] = row.algorithm

    def ratios(name: str, other: str) -> list[tuple[int, float]]:
        # Logarithms of sizes have no 0, where there is nothing to do.
        sizes = sorted(size for size in times[name].keys() & times[other].keys() if size > 0)
        return [(size, times[name][size] / times[other][size]) for size in sizes]

    found = []
    for one, two in combinations(algorithms, 2):
        if algorithms[one] != algorithms[two] and ratios(one, two):
            first, second = (one, two) if ratios(one, two)[-1][1] < 1 else (two, one)
            found.append(Crossover(first, second, _crossing(ratios(first, second))))
    for name in algorithms:
        for other in times:
            if other not in algorithms and ratios(name, other):
                found.append(Crossover(name, other, _crossing(ratios(name, other))))
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
