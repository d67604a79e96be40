"""Which references a sweep leaves out: those whose next call would exceed the time limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencl_lab.core.wording import duration
from opencl_lab.lab.engine.references import References
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.peers import residents
from opencl_lab.ops.solver import Problem

UNNAMED_SECONDS = 5.0  # limit for a call of a reference that the user has not named
NAMED_SECONDS = 60.0  # limit for a call of one that was named
UNCERTAINTY = 20.0  # factor by which an extrapolation may be off, by caches and overhead of calls
WIDE_GROWTH = 100.0  # growth of the work up to which an extrapolation is trusted


@dataclass(frozen=True)
class _Known:
    """The time of a call of one implementation at a size."""

    size: int
    seconds: float
    algorithm: str


@dataclass
class TimeoutPredictor:
    """Estimates the next call of each reference from its times at smaller sizes.

    A time is assumed to grow with the `cost` of the reference; without one, with the arithmetic
    or the traffic of the problem, whichever grows more. Where that extrapolates far, the reference
    is left out only if the estimate exceeds the limit by `UNCERTAINTY`.
    """

    operation: Operation[Any]
    references: References  # those of the sweep
    problem: Callable[[int], Problem]  # the problem of a size
    seconds: float | None = None  # limit, instead of `NAMED_SECONDS` and `UNNAMED_SECONDS`
    _known: dict[str, _Known] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """Seconds that a call may take."""
        return self.seconds or (NAMED_SECONDS if self.references.by_name else UNNAMED_SECONDS)

    def add(self, size: int, rows: Sequence[Measurement]) -> None:
        """Learn from what was measured."""
        for row in rows:
            if row.kind != "opencl" and row.ok and row.total_ms:
                seconds = max(row.total_ms.median / 1e3, 1e-9)
                self._known[row.implementation] = _Known(size, seconds, row.algorithm)

    def skip(self, size: int) -> dict[str, str]:
        """Return the implementations to leave out at a size, and why; see `Request.skip`."""
        return {name: reason for name in self._known if (reason := self._reason(name, size))}

    def _reason(self, name: str, size: int) -> str:
        """Return why the implementation `name` is left out; empty if it is run."""
        known = self._known[name]
        growth = self._growth(known, size)
        estimate = known.seconds * growth
        if estimate <= self.limit * (UNCERTAINTY if growth > WIDE_GROWTH else 1.0):
            return ""
        usual = self.seconds is None and not self.references.by_name
        named = f"{duration(NAMED_SECONDS)} with --against {known.algorithm}"
        return (
            f"a call would take about {duration(estimate)}, as it took {duration(known.seconds)} "
            f"at {self.operation.size_option}={known.size}; the limit is {duration(self.limit)}, "
            f"{named if usual else '--patience raises it'}"
        )

    def _growth(self, known: _Known, size: int) -> float:
        """Return the estimated ratio of the times at `size` and at the known size."""
        every = [*self.operation.references, *residents(self.operation.calls)]
        old, new = self.problem(known.size), self.problem(size)
        cost = next((item.cost for item in every if item.name == known.algorithm), None)
        if cost is not None:
            return cost(new) / max(cost(old), 1)
        pairs = ((new.work.flops, old.work.flops), (new.work.bytes, old.work.bytes))
        return max((more / less for more, less in pairs if less), default=1.0)
