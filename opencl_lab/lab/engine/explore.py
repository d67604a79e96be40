"""The loop of measurements: points come from a generator, results from a journal or a device.

A point generator yields a point, or a list of points of which any one may be measured, and is
sent the result:

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

from opencl_lab.core.early import command

P = TypeVar("P", bound=Hashable)
R = TypeVar("R")

PointGenerator: TypeAlias = Generator[P | list[P], R, None]

Stopped: TypeAlias = Literal["complete", "budget", "time", "interrupted"]
"""Why an exploration ended."""


class ExplorationStop(Exception):
    """Ends an exploration; `measure` may raise it before it starts to measure."""

    def __init__(self, why: Stopped):
        super().__init__(why)
        self.why: Stopped = why


class Limits:
    """The limits of an exploration, from now on.

    `budget` is the largest number of points, known ones included; `time_limit` is in seconds.
    """

    def __init__(self, budget: int | None = None, time_limit: float | None = None):
        self.budget, self.time_limit = budget, time_limit
        self.begin = monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.begin

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return math.inf if self.time_limit is None else self.time_limit - self.spent

    def allow(self, points: int) -> bool:
        """Return whether the budget allows another point after `points`."""
        return self.budget is None or points < self.budget

    def check_time(self) -> None:
        """Raise `ExplorationStop` if the time is up."""
        if self.left <= 0:
            raise ExplorationStop("time")


class Exploration(Generic[P, R]):
    """Measures the points of a generator; results are kept, however it ends.

    Without `keep` they are in memory alone: a command that is told to end waits for a running call.

    ``measure(point)`` returns the result of a point that is not in `known`, which may come from
    a journal. ``keep(point, row)`` is called as soon as a point was measured, to write it to a
    journal. ``told(point, row)`` is called once for each point, known or measured.
    """

    def __init__(
        self,
        measure: Callable[[P], R],
        *,
        known: Mapping[P, R] | None = None,
        keep: Callable[[P, R], None] | None = None,
        told: Callable[[P, R], None] = lambda point, row: None,
        limits: Limits | None = None,
    ):
        self._measure, self._keep, self._told = measure, keep, told
        self.known = dict(known or {})
        self.limits = limits or Limits()
        self.seen: dict[P, R] = {}  # results sent to generators so far, in order
        self.measured: list[P] = []  # points that were not known

    def run(self, points: PointGenerator[P, R]) -> Stopped:
        """Run a generator until it ends or something stops it; return which."""
        answer: R | None = None
        try:
            with closing(points):
                while True:
                    try:
                        # A generator is started by sending None.
                        asked = points.send(answer)  # type: ignore[arg-type]
                    except StopIteration:
                        return "complete"
                    answer = self.answer(self.choose(asked) if isinstance(asked, list) else asked)
        except ExplorationStop as stop:
            return stop.why
        except KeyboardInterrupt:
            command.patient = True  # those who called it print and write what there is
            return "interrupted"

    def choose(self, points: list[P]) -> P:
        """Return which of several points to answer: one whose result is known, else the first."""
        return next((p for p in points if p in self.seen or p in self.known), points[0])

    def answer(self, point: P) -> R:
        """Return the result of a point: sent before, known, or measured now.

        `ExplorationStop` is raised if the budget or the time is used up.
        """
        if point in self.seen:
            return self.seen[point]
        if not self.limits.allow(len(self.seen)):
            raise ExplorationStop("budget")
        if point in self.known:
            row = self.known[point]
        else:
            self.limits.check_time()
            row = self._measure(point)
            self.measured.append(point)
            if self._keep is None:
                command.patient = True
            else:
                self._keep(point, row)
        self.seen[point] = row
        self._told(point, row)
        return row


def grid(points: Iterable[P]) -> PointGenerator[P, R]:
    """Yield all points in order."""
    for point in points:  # noqa: UP028  (an iterator cannot be sent anything)
        yield point
