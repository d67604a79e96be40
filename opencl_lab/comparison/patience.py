"""Which references a sweep leaves out: those whose next call takes longer than anybody waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.wanted import References
from opencl_lab.operation import Operation
from opencl_lab.reference.descriptor import Reference
from opencl_lab.reference.peers import Resident, residents
from opencl_lab.solver import Problem
from opencl_lab.wording import duration

__all__ = ["Patience"]

UNNAMED = 5.0  # seconds of a call of a reference that nobody asked for by name
NAMED = 60.0  # and of one that somebody did
OVERHEAD = 1e-4  # seconds of a call, about, that do not grow with the problem
MANY_STEPS = 1 << 32  # of a reference, which take some seconds: worth a run on a small problem


@dataclass(frozen=True)
class _Known:
    """Rows that were measured, of which problem, and what a sentence calls it."""

    label: str
    problem: Problem
    rows: Sequence[Measurement]


@dataclass
class Patience:
    """Estimates the next call of each reference from its times at smaller sizes.

    A time grows with the `steps` of a reference; where it has none, with the arithmetic or the
    traffic of the problem, whichever grows more.

    Parameters
    ----------
    operation : Operation
    references : References
        What the sweep runs.
    seconds : float, optional
        That a call may take. By default 5, and 60 for a reference that was asked for by name.
    trial : callable, optional
        ``trial(names)`` returns a small problem, and its rows for these references. It is called
        before a first problem that needs many steps, for which there are no times.
    """

    operation: Operation[Any]
    references: References
    seconds: float | None = None
    trial: Callable[[Sequence[str]], tuple[Problem, Sequence[Measurement]] | None] | None = None
    _known: list[_Known] = field(default_factory=list)

    @property
    def limit(self) -> float:
        """Seconds that a call may take."""
        return self.seconds or (NAMED if self.references.by_name else UNNAMED)

    def add(self, label: str, problem: Problem, rows: Sequence[Measurement]) -> None:
        """Learn from what was measured."""
        self._known.append(_Known(label, problem, rows))

    def skip(self, problem: Problem) -> dict[str, str]:
        """Return the rows to leave out of a larger problem, and why; see `Request.skip`."""
        if not self._known:
            self._try(problem)
        found = {}
        for name in dict.fromkeys(row.implementation for item in self._known for row in item.rows):
            reason = self._reason(name, problem)
            if reason:
                found[name] = reason
        return found

    def _try(self, problem: Problem) -> None:
        """Learn from a small problem how fast the references are that need many steps."""
        wanted = (*self.references.on_host, *self.references.on_device)
        slow = [item.name for item in wanted if item.steps and item.steps(problem) > MANY_STEPS]
        if self.trial is None or not slow or not self.references.by_name:
            return  # one that nobody named tries for itself
        tried = self.trial(slow)
        if tried is not None:
            self.add("a small problem", *tried)

    def _reason(self, name: str, problem: Problem) -> str:
        """Return why nobody would wait for the row `name`, or nothing."""
        for item in reversed(self._known):
            row = next((row for row in item.rows if row.implementation == name), None)
            if row is None or row.kind == "opencl" or not row.ok or row.total_ms is None:
                continue
            seconds = row.total_ms.median / 1e3
            growth = self._growth(row.algorithm, item.problem, problem)
            estimate = max(seconds - OVERHEAD, 0.0) * growth
            if estimate <= self.limit:
                return ""
            return (
                f"a call would take about {duration(estimate)}, as it took "
                f"{duration(seconds)} at {item.label}; {self._advice(row.algorithm)}"
            )
        return ""

    def _advice(self, reference: str) -> str:
        limit = f"the limit is {duration(self.limit)}"
        if self.seconds is None and not self.references.by_name:
            return f"{limit}, {duration(NAMED)} with --against {reference}"
        return f"{limit}, --patience raises it"

    def _growth(self, name: str, before: Problem, after: Problem) -> float:
        """Return how many times as long a call of a reference takes for another problem."""
        every: list[Reference | Resident] = [
            *self.operation.references,
            *residents(self.operation.calls),
        ]
        steps = next((item.steps for item in every if item.name == name), None)
        if steps is not None:
            return steps(after) / max(steps(before), 1)
        least, most = before.work, after.work
        pairs = ((most.flops, least.flops), (most.bytes, least.bytes))
        return max((new / old for new, old in pairs if old), default=1.0)
