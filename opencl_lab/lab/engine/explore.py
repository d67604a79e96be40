"""Going through points: a strategy asks, and is sent what is known already or is measured now.

A strategy is a generator. It yields a point, or a list of points of which any may be answered
first, and is sent what became of it:

```text
 def grid(points):
     for point in points:
         row = yield point
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import closing
from time import monotonic
from typing import Generic, Literal, TypeAlias, TypeVar

P = TypeVar("P", bound=Hashable)
R = TypeVar("R")

Strategy: TypeAlias = Generator[P | list[P], R, None]

Stopped: TypeAlias = Literal["complete", "budget", "time", "interrupted"]
"""What ended an exploration."""


class Stop(Exception):
    """Ends an exploration; whatever measures may raise it between two of its steps."""

    def __init__(self, why: Stopped):
        super().__init__(why)
        self.why: Stopped = why


class Limits:
    """What an exploration may spend from now on.

    `budget` is how many points there may be, those included that were known before, and
    `time_limit` is in seconds.
    """

    def __init__(self, budget: int | None = None, time_limit: float | None = None):
        self.budget, self.time_limit = budget, time_limit
        self.begin = monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self.begin

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return math.inf if self.time_limit is None else self.time_limit - self.spent

    def allow(self, points: int) -> bool:
        """Return whether there is budget for another point after so many."""
        return self.budget is None or points < self.budget

    def check_time(self) -> None:
        """Raise `Stop` where the time is up."""
        if self.left <= 0:
            raise Stop("time")


class Exploration(Generic[P, R]):
    """Answers the questions of strategies; what was measured is kept whatever ends it.

    ``measure(point)`` returns what became of a point, unless that is `known`, as from a journal.
    ``keep(point, row)`` takes each point that was measured at once, as to a journal, and
    ``told(point, row)`` hears of each when it is answered first, known or not.
    """

    def __init__(
        self,
        measure: Callable[[P], R],
        *,
        known: Mapping[P, R] | None = None,
        keep: Callable[[P, R], None] = lambda point, row: None,
        told: Callable[[P, R], None] = lambda point, row: None,
        limits: Limits | None = None,
    ):
        self._measure, self._keep, self._told = measure, keep, told
        self.known = dict(known or {})
        self.limits = limits or Limits()
        self.seen: dict[P, R] = {}  # what strategies were sent so far, in that order
        self.measured: list[P] = []  # the points that were not known before
        self.thinking = 0.0  # seconds that strategies took

    def run(self, strategy: Strategy[P, R]) -> Stopped:
        """Answer a strategy to its end, or until something stops it; return what did."""
        answer: R | None = None
        try:
            with closing(strategy):
                while True:
                    begin = monotonic()
                    try:
                        # The first answer is None, which begins a generator.
                        asked = strategy.send(answer)  # type: ignore[arg-type]
                    except StopIteration:
                        return "complete"
                    self.thinking += monotonic() - begin
                    answer = self.answer(self.choose(asked) if isinstance(asked, list) else asked)
        except Stop as stop:
            return stop.why
        except KeyboardInterrupt:
            return "interrupted"

    def choose(self, points: list[P]) -> P:
        """Return which of several points to answer: one that costs nothing, else the first."""
        return next((p for p in points if p in self.seen or p in self.known), points[0])

    def answer(self, point: P) -> R:
        """Return what became of a point: sent before, known, or measured now.

        Stop is raised if the budget or the time is used up.
        """
        if point in self.seen:
            return self.seen[point]
        if not self.limits.allow(len(self.seen)):
            raise Stop("budget")
        if point in self.known:
            row = self.known[point]
        else:
            self.limits.check_time()
            row = self._measure(point)
            self.measured.append(point)
            self._keep(point, row)
        self.seen[point] = row
        self._told(point, row)
        return row


def grid(points: Iterable[P]) -> Strategy[P, R]:
    """Ask for all points in their order."""
    for point in points:  # noqa: UP028  (an iterator cannot be sent anything)
        yield point
