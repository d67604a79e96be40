"""Several runs of one thing: the median, and where the true one lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

__all__ = ["Times", "interval_of_median"]


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

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON document has."""
        return {
            "median": self.median,
            "min": self.min,
            "max": self.max,
            "runs": self.runs,
            "interval": list(self.interval),
        }


def interval_of_median(samples: Sequence[float], doubt: float = 0.05) -> tuple[float, float]:
    """Return the least and the greatest sample that the true median lies between.

    By order statistics (the sign test), so that single outliers do not matter: of each side
    as many samples are left out as the binomial distribution allows with this much doubt.
    That is none up to 8 samples and a doubt of 0.05, one of 9, three of 15.
    """
    ordered, count = sorted(samples), len(samples)
    left_out, tail = 0, 1
    while 2 * (tail + math.comb(count, left_out + 1)) <= doubt * 2**count:
        left_out += 1
        tail += math.comb(count, left_out)
    return ordered[left_out], ordered[count - 1 - left_out]
