"""Estimated times of small problems on the threads of a CPU, by which `Solver.side` chooses.

Each solver has its own, some in a module ``estimates``, for its `serial_us` and `parallel_us`.
Names of constants end in their units: ``_US`` in microseconds, ``_NS`` in nanoseconds. They were
measured with PoCL 3.0 on an AMD EPYC 9005 (Zen 5) at 4 GHz, whose vectors have 64 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

WAIT_US, WAIT_US_PER_UNIT = 20.0, 3.0
"""What a call on all threads takes besides its kernels, and one on a single thread does not: with
PoCL 23 us were measured on 2 cores, and 68 on 16."""
MOST_SERIAL_US = 2000.0
"""Longest time of a call in the calling thread, which Ctrl-C and other threads wait for."""
VECTOR_BYTES = 64
EFFICIENCY = 0.7
"""What each further thread adds to the first, as threads of one core share its units."""
FURTHER_LAUNCH_US = 10.0
"""A launch on threads that follows another one, for each thread that it wakes."""


def on_threads(serial_us: float, units: int) -> float:
    """Return the microseconds on `units` threads of what takes one of them `serial_us`."""
    return serial_us / (1 + EFFICIENCY * (units - 1))


P = TypeVar("P")


class Estimates(Generic[P]):
    """What a solver estimates of its kernels on the threads of a CPU, for `Solver.side`."""

    multiples: ClassVar[Mapping[str, float]] = {}
    """Algorithms that the estimates do not fit, with their times on a thread as multiples of these,
    which are for what ``auto`` takes."""

    def serial_us(self, problem: P) -> float:
        """Return the estimated microseconds of kernels on one thread; infinite for all threads."""
        return math.inf

    def parallel_us(self, problem: P, units: int) -> float:
        """Return the estimated microseconds on `units` threads, without the launch and the wait."""
        return self.serial_us(problem) / units

    def estimates_us(self, problem: P, units: int, algorithm: str = "auto") -> tuple[float, float]:
        """Return the estimated microseconds of an algorithm on one thread, and on `units`."""
        alone, together = self.serial_us(problem), self.parallel_us(problem, units)
        if algorithm not in self.multiples:
            return alone, together
        more = (self.multiples[algorithm] - 1) * alone
        return alone + more, together + on_threads(more, units)

    def is_faster_alone(self, problem: P, units: int, algorithm: str) -> bool:
        """Return whether a call takes less time on one thread than on `units`."""
        alone, parallel = self.estimates_us(problem, units, algorithm)
        together = WAIT_US + WAIT_US_PER_UNIT * units + parallel
        return alone <= min(together, MOST_SERIAL_US)
