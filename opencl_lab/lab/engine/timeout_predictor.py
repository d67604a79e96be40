"""Which references a sweep leaves out: those whose next call would exceed the time limit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opencl_lab.core.wording import duration
from opencl_lab.lab.engine.references import References
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Reference
from opencl_lab.lab.reference.peers import Resident, residents
from opencl_lab.ops.solver import Problem

UNNAMED_SECONDS = 5.0  # limit for a call of a reference that the user has not named
NAMED_SECONDS = 60.0  # limit for a call of one that was named
UNCERTAINTY = 20.0  # factor by which an extrapolation may be off, by caches and overhead of calls
WIDE_GROWTH = 100.0  # growth of the work up to which an extrapolation is trusted
FIRST_COST = 1 << 27  # cost of a first run, which takes about a tenth of a second

SingleRun: TypeAlias = Callable[[int, str], Sequence[Measurement]]
"""``trial(size, reference)`` returns rows of one reference that were measured once."""


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
    or the traffic of the problem, whichever grows more. Where that extrapolates far and could
    decide either way, the reference is first run at a size in between.
    """

    operation: Operation[Any]
    references: References  # those of the sweep
    problem: Callable[[int], Problem]  # the problem of a size
    trial: SingleRun
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
        if not self._known:
            self._begin(size)
        return {name: reason for name in self._known if (reason := self._reason(name, size))}

    def _begin(self, size: int) -> None:
        """Run named references of high cost at a small size before the first one.

        References that are not named estimate their time themselves (`ReferenceRun`). Without
        `cost` nothing is known before the first call.
        """
        for item in self.references.every if self.references.by_name else ():
            small = _cheap_size(item, self.problem, size)
            if small < size:
                self.add(small, self.trial(small, item.name))

    def _reason(self, name: str, size: int) -> str:
        """Return why the implementation `name` is left out; empty if it is run."""
        known = self._known[name]
        growth = self._growth(known, size)
        estimate = known.seconds * growth
        uncertain = self.limit / UNCERTAINTY < estimate < self.limit * UNCERTAINTY
        if uncertain and growth > WIDE_GROWTH:
            self._try_between(known, size)
            known = self._known[name]
            estimate = known.seconds * self._growth(known, size)
        if estimate <= self.limit:
            return ""
        usual = self.seconds is None and not self.references.by_name
        named = f"{duration(NAMED_SECONDS)} with --against {known.algorithm}"
        return (
            f"a call would take about {duration(estimate)}, as it took {duration(known.seconds)} "
            f"at {self.operation.size_option}={known.size}; the limit is {duration(self.limit)}, "
            f"{named if usual else '--patience raises it'}"
        )

    def _try_between(self, known: _Known, size: int) -> None:
        """Run the reference at a size where the estimate is a small fraction of the limit."""
        most = self.limit / UNCERTAINTY / 2 / known.seconds
        between = _largest(known.size, size, lambda at: self._growth(known, at) <= most)
        if between > known.size:
            self.add(between, self.trial(between, known.algorithm))

    def _growth(self, known: _Known, size: int) -> float:
        """Return the estimated ratio of the times at `size` and at the known size."""
        every: tuple[Reference | Resident, ...] = (
            *self.operation.references, *residents(self.operation.calls),
        )  # fmt: skip
        old, new = self.problem(known.size), self.problem(size)
        cost = next((item.cost for item in every if item.name == known.algorithm), None)
        if cost is not None:
            return cost(new) / max(cost(old), 1)
        pairs = ((new.work.flops, old.work.flops), (new.work.bytes, old.work.bytes))
        return max((more / less for more, less in pairs if less), default=1.0)


def _cheap_size(
    reference: Reference | Resident, problem: Callable[[int], Problem], size: int
) -> int:
    """Return the largest size of at most `FIRST_COST`, or `size` if its own cost is moderate."""
    cost = reference.cost
    if cost is None or cost(problem(size)) <= UNCERTAINTY * FIRST_COST:
        return size
    return _largest(1, size, lambda at: cost(problem(at)) <= FIRST_COST)


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest size below `high` that fits, `low` where none does."""
    return low + bisect_left(range(low + 1, high), True, key=lambda size: not fits(size))
