"""Which references a sweep leaves out: those whose next call takes longer than anybody waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.core.wording import duration
from opencl_lab.lab.engine.references import References
from opencl_lab.lab.engine.request import Point
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import run_point
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


@dataclass
class Patience:
    """Estimates the next call of each reference from its times at smaller sizes.

    A time grows with the `steps` of a reference; where it has none, with the arithmetic or the
    traffic of the problem, whichever grows more. Where the known size is so small that this may
    be far off, and it matters, the reference is tried at a size between.

    Parameters
    ----------
    operation : Operation
    references : References
        What the sweep runs.
    problem : callable
        ``problem(size)`` returns the problem of a size.
    trial : callable
    seconds : float, optional
        That a call may take. By default 5, and 60 for a reference that was asked for by name.
    """

    operation: Operation[Any]
    references: References
    problem: Callable[[int], Problem]
    trial: Trial
    seconds: float | None = None
    _known: dict[str, _Known] = field(default_factory=dict)
    _algorithms: dict[str, str] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """Seconds that a call may take."""
        return self.seconds or (NAMED if self.references.by_name else UNNAMED)

    def add(self, size: int, rows: Sequence[Measurement]) -> None:
        """Learn from what was measured."""
        for row in rows:
            if row.kind != "opencl" and row.ok and row.total_ms:
                seconds = max(row.total_ms.median / 1e3, 1e-9)
                self._known[row.implementation] = _Known(size, seconds)
                self._algorithms[row.implementation] = row.algorithm

    def skip(self, size: int) -> dict[str, str]:
        """Return the rows to leave out at a larger size, and why; see `Request.skip`."""
        if not self._known:
            self._begin(size)
        found = {}
        for name in self._known:
            reason = self._reason(name, size)
            if reason:
                found[name] = reason
        return found

    def _begin(self, size: int) -> None:
        """Try references that need many steps for the first size; who is not named does so itself.

        Without `steps` nothing is known before a first call.
        """
        wanted = (*self.references.on_host, *self.references.on_device)
        for item in wanted if self.references.by_name else ():
            small = _few_steps(item, self.problem, size)
            if small < size:
                self.add(small, self.trial(small, item.name))

    def _reason(self, name: str, size: int) -> str:
        """Return why nobody would wait for the row `name`, or nothing."""
        known = self._known[name]
        growth = self._growth(name, known.size, size)
        estimate = known.seconds * growth
        uncertain = self.limit / WRONG < estimate < self.limit * WRONG
        if uncertain and growth > WIDE:
            known = self._try_between(name, size)
            estimate = known.seconds * self._growth(name, known.size, size)
        if estimate <= self.limit:
            return ""
        at = f"{self.operation.size_option}={known.size}"
        return (
            f"a call would take about {duration(estimate)}, as it took "
            f"{duration(known.seconds)} at {at}; {self._advice(name)}"
        )

    def _try_between(self, name: str, size: int) -> _Known:
        """Try a row where it takes a small part of the limit by what is known so far."""
        known = self._known[name]
        most = self.limit / WRONG / 2 / known.seconds
        between = _largest(known.size, size, lambda at: self._growth(name, known.size, at) <= most)
        if between > known.size:
            self.add(between, self.trial(between, self._algorithms[name]))
        return self._known[name]

    def _advice(self, name: str) -> str:
        limit = f"the limit is {duration(self.limit)}"
        if self.seconds is None and not self.references.by_name:
            return f"{limit}, {duration(NAMED)} with --against {self._algorithms[name]}"
        return f"{limit}, --patience raises it"

    def _growth(self, name: str, before: int, after: int) -> float:
        """Return how many times as long a call of a row takes at another size."""
        every: list[Reference | Resident] = [
            *self.operation.references,
            *residents(self.operation.calls),
        ]
        algorithm, old, new = self._algorithms[name], self.problem(before), self.problem(after)
        steps = next((item.steps for item in every if item.name == algorithm), None)
        if steps is not None:
            return steps(new) / max(steps(old), 1)
        pairs = ((new.work.flops, old.work.flops), (new.work.bytes, old.work.bytes))
        return max((more / less for more, less in pairs if less), default=1.0)


def reference_trial(point: Point, reference: str, device: Device) -> Sequence[Measurement]:
    """Return the rows of a reference alone, each of one timed run; none where it cannot run.

    What is wrong with it is said where it is measured.
    """
    alone = {"runs": (), "against": [reference], "repeats": 1, "lenient": True, "baseline": None}
    try:
        return run_point(point.asking(**alone), device=device).measurements
    except OclabError:
        return ()


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
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
