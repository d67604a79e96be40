"""Summaries of samples: the median and its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any

from opencl_lab.core.records import Count, Finite

CLOSE = 1e-9  # relative tolerance: the median of two floats may be rounded beyond both


@dataclass(frozen=True)
class Times:
    """Median, minimum and maximum of samples, in milliseconds; also as documents have them.

    `interval` is the confidence interval of the median, see `interval_of_median`; by default it
    goes from the minimum to the maximum.
    """

    median: Finite
    min: Finite
    max: Finite
    runs: Count = 1
    interval: tuple[Finite, Finite] = field(default=(0.0, 0.0), compare=False)

    def __post_init__(self) -> None:
        if not any(self.interval):
            object.__setattr__(self, "interval", (self.min, self.max))
        if not _ordered(0.0, self.min, self.median, self.max):
            raise ValueError("min, median and max are not in this order")
        if not _ordered(self.min, self.interval[0], self.median, self.interval[1], self.max):
            raise ValueError("the interval does not lie between min and max, around median")

    @classmethod
    def of(cls, samples: Sequence[float]) -> Times:
        """Summarise samples in milliseconds."""
        interval = interval_of_median(samples)
        return cls(median(samples), min(samples), max(samples), len(samples), interval)

    def is_above(self, other: Times) -> bool:
        """Return whether the interval lies above that of `other`."""
        return self.interval[0] > other.interval[1]

    def is_level_with(self, other: Times) -> bool:
        """Return whether the intervals overlap, so that neither is faster beyond noise."""
        return not (self.is_above(other) or other.is_above(self))

    def over(self, other: Times) -> tuple[float, float]:
        """Return the bounds of the ratio of this true median to the other's."""
        return self.interval[0] / other.interval[1], self.interval[1] / other.interval[0]

    def as_dict(self) -> dict[str, Any]:
        """Return the values for a JSON document."""
        return {**vars(self), "interval": list(self.interval)}


def interval_of_median(samples: Sequence[float], alpha: float = 0.05) -> tuple[float, float]:
    """Return the confidence interval of the median, at a confidence level of ``1 - alpha``.

    It is made of order statistics (the sign test), so that single outliers do not matter: on each
    side as many samples are left out as the binomial distribution allows. With an `alpha` of 0.05
    these are none of up to 8 samples, one of 9, three of 15.
    """
    ordered, left_out = sorted(samples), _left_out(len(samples), alpha)
    return ordered[left_out], ordered[len(samples) - 1 - left_out]


@lru_cache(maxsize=1024)
def _left_out(count: int, alpha: float) -> int:
    """Return how many of `count` samples are left out on each side."""
    # In whole numbers: from 1024 samples on, 2**count is too large for a float.
    allowed = int(Fraction(alpha) * 2**count)
    left_out, tail, ways = 0, 1, count
    while 2 * (tail + ways) <= allowed:
        left_out += 1
        tail += ways
        ways = ways * (count - left_out) // (left_out + 1)
    return left_out


def _ordered(*values: float) -> bool:
    """Return whether values are in ascending order, up to rounding."""
    return all(one <= two * (1 + CLOSE) for one, two in pairwise(values))
