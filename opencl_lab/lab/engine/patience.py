"""Which references a sweep leaves out: those whose next call takes longer than anybody waits."""

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

UNNAMED = 5.0  # seconds of a call of a reference that nobody asked for by name
NAMED = 60.0  # and of one that somebody did
WRONG = 20.0  # how far an estimate over a wide gap may be off: caches, and what a call costs at all
WIDE = 100.0  # times as much work: estimates over less are believed
FIRST_STEPS = 1 << 27  # of a reference, which take a tenth of a second or so

Trial: TypeAlias = Callable[[int, str], Sequence[Measurement]]
"""``trial(size, reference)`` returns rows of one reference that were measured once."""


@dataclass(frozen=True)
class _Known:
    """What a call of a row took at a size."""

    size: int
    seconds: float
    algorithm: str


@dataclass
class Patience:
    """Estimates the next call of each reference from its times at smaller sizes.

    A time grows with the `steps` of a reference; where it has none, with the arithmetic or the
    traffic of the problem, whichever grows more. Where the known size is so small that this may
    be far off, and it matters, the reference is tried at a size between.
    """

    operation: Operation[Any]
    references: References  # what the sweep runs
    problem: Callable[[int], Problem]  # of a size
    trial: Trial
    seconds: float | None = None  # that a call may take, instead of `NAMED` and `UNNAMED`
    _known: dict[str, _Known] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """Seconds that a call may take."""
        return self.seconds or (NAMED if self.references.by_name else UNNAMED)

    def add(self, size: int, rows: Sequence[Measurement]) -> None:
        """Learn from what was measured."""
        for row in rows:
            if row.kind != "opencl" and row.ok and row.total_ms:
                seconds = max(row.total_ms.median / 1e3, 1e-9)
                self._known[row.implementation] = _Known(size, seconds, row.algorithm)

    def skip(self, size: int) -> dict[str, str]:
        """Return the rows to leave out at a larger size, and why; see `Request.skip`."""
        if not self._known:
            self._begin(size)
        return {name: reason for name in self._known if (reason := self._reason(name, size))}

    def _begin(self, size: int) -> None:
        """Try references that need many steps for the first size; who is not named does so itself.

        Without `steps` nothing is known before a first call.
        """
        for item in self.references.every if self.references.by_name else ():
            small = _few_steps(item, self.problem, size)
            if small < size:
                self.add(small, self.trial(small, item.name))

    def _reason(self, name: str, size: int) -> str:
        """Return why nobody would wait for the row `name`, or nothing."""
        known = self._known[name]
        growth = self._growth(known, size)
        estimate = known.seconds * growth
        uncertain = self.limit / WRONG < estimate < self.limit * WRONG
        if uncertain and growth > WIDE:
            self._try_between(known, size)
            known = self._known[name]
            estimate = known.seconds * self._growth(known, size)
        if estimate <= self.limit:
            return ""
        usual = self.seconds is None and not self.references.by_name
        named = f"{duration(NAMED)} with --against {known.algorithm}"
        return (
            f"a call would take about {duration(estimate)}, as it took {duration(known.seconds)} "
            f"at {self.operation.size_option}={known.size}; the limit is {duration(self.limit)}, "
            f"{named if usual else '--patience raises it'}"
        )

    def _try_between(self, known: _Known, size: int) -> None:
        """Try a row where it takes a small part of the limit by what is known so far."""
        most = self.limit / WRONG / 2 / known.seconds
        between = _largest(known.size, size, lambda at: self._growth(known, at) <= most)
        if between > known.size:
            self.add(between, self.trial(between, known.algorithm))

    def _growth(self, known: _Known, size: int) -> float:
        """Return how many times as long a call of a row takes at another size."""
        every: tuple[Reference | Resident, ...] = (
            *self.operation.references, *residents(self.operation.calls),
        )  # fmt: skip
        old, new = self.problem(known.size), self.problem(size)
        steps = next((item.steps for item in every if item.name == known.algorithm), None)
        if steps is not None:
            return steps(new) / max(steps(old), 1)
        pairs = ((new.work.flops, old.work.flops), (new.work.bytes, old.work.bytes))
        return max((more / less for more, less in pairs if less), default=1.0)


def _few_steps(
    reference: Reference | Resident, problem: Callable[[int], Problem], size: int
) -> int:
    """Return a smaller size that tells how fast a reference is, or `size` itself, if that does."""
    steps = reference.steps
    if steps is None or steps(problem(size)) <= WRONG * FIRST_STEPS:
        return size
    return _largest(1, size, lambda at: steps(problem(at)) <= FIRST_STEPS)


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest size below `high` that fits, `low` where none does."""
    return low + bisect_left(range(low + 1, high), True, key=lambda size: not fits(size))
