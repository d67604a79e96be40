"""Several runs of one thing: the median, and where the true one lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Times:
    """Median, least and greatest of several runs, in milliseconds.

    `interval` is where the true median lies, see `interval_of_median`; min to max by default.
    """

    median: float
    min: float
    max: float
    runs: int
    interval: tuple[float, float] = field(default=(0.0, 0.0), compare=False)

    def __post_init__(self) -> None:
        if not any(self.interval):
            object.__setattr__(self, "interval", (self.min, self.max))

    @classmethod
    def of(cls, samples: Sequence[float]) -> Times:
        """Summarise samples in milliseconds."""
        interval = interval_of_median(samples)
        return cls(median(samples), min(samples), max(samples), len(samples), interval)

    def is_above(self, other: Times) -> bool:
        """Return whether these times are greater than others beyond the spread of both."""
        return self.interval[0] > other.interval[1]

    def is_level_with(self, other: Times) -> bool:
        """Return whether the intervals overlap, so that neither is the faster one for certain."""
        return not (self.is_above(other) or other.is_above(self))

    def over(self, other: Times) -> tuple[float, float]:
        """Return the least and the greatest that the one true median over the other may be."""
        return self.interval[0] / other.interval[1], self.interval[1] / other.interval[0]

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON document has."""
        return {**vars(self), "interval": list(self.interval)}


def interval_of_median(samples: Sequence[float], doubt: float = 0.05) -> tuple[float, float]:
    """Return the least and the greatest sample that the true median lies between.

    By order statistics (the sign test), so that single outliers do not matter: of each side
    as many samples are left out as the binomial distribution allows with this much doubt.
    That is none up to 8 samples and a doubt of 0.05, one of 9, three of 15.
    """
    ordered, left_out = sorted(samples), _left_out(len(samples), doubt)
    return ordered[left_out], ordered[len(samples) - 1 - left_out]


@lru_cache(maxsize=1024)
def _left_out(count: int, doubt: float) -> int:
    """Return how many of so many samples are left out on each side."""
    # Whole numbers: 2**count is too large for a float from 1024 samples on.
    allowed = int(Fraction(doubt) * 2**count)
    left_out, tail, ways = 0, 1, count
    while 2 * (tail + ways) <= allowed:
        left_out += 1
        tail += ways
        ways = ways * (count - left_out) // (left_out + 1)
    return left_out
