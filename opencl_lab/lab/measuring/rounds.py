"""Who is measured next: all take turns in rounds, until their medians are known well enough.

```text
 round 1   c b a d        everybody once, in an order that is shuffled anew each time
 round 2   a d c b
   ...
 round 5   b a d c        from now on whoever is steady stops, but for those that overlap
 round 6   d a            with one that is not: the two can only be told apart side by side
   ...                    until all are steady, or the time is up
```

Turns spread a change in the machine's speed over all. An order that stays the same would let each
always run behind the same neighbour, with its caches.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from statistics import median
from typing import NamedTuple, TypeVar

from opencl_lab.lab.measuring.samples import interval_of_median

LEAST_ROUNDS = 5
"""Samples that show a spread at all."""
STEADY = 0.02
"""Half of the interval of the median over the median, at most, of what is steady."""
BUDGET = 10.0
"""Seconds for all of those that are measured together, where nobody says otherwise."""

T = TypeVar("T")


class Turn(NamedTuple):
    """One turn: its round, from 1 on; whose it is; and the share of rounds or time that is over."""

    number: int
    participant: int
    share: float


def shuffled(participants: Sequence[T], order: random.Random) -> list[T]:
    """Return the participants in a new order."""
    return order.sample(participants, len(participants))


class Rounds:
    """The turns of several participants, to be iterated over once.

    Whoever iterates makes the measurement of a turn, and adds its result to the samples of that
    participant. One that adds nothing gets no further turn.

    Everybody gets a first turn, whatever it takes. After that, a turn is taken only if it fits
    into the budget as the last one of this participant did, or into its equal part of the budget:
    so a slow one does not use up the time of the others, and all together take at most the
    budget and the first turns.

    Parameters
    ----------
    samples : sequence of sequences of float
        Those of each participant, which grow.
    rounds : int, optional
        Exactly so many, unless the budget ends before. Without it there are at least
        `LEAST_ROUNDS`, and more until everybody is steady.
    budget : float, optional
        Seconds for all turns together. By default `BUDGET`, and no limit where `rounds` says how
        many there are.
    seed : int
        Of the orders.
    rest : callable, optional
        What waits before each turn, as a part of it.
    clock : callable
        What tells the time.
    """

    def __init__(
        self,
        samples: Sequence[Sequence[float]],
        rounds: int | None = None,
        budget: float | None = None,
        *,
        seed: int = 0,
        rest: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._samples, self._rounds = samples, rounds
        self._budget = BUDGET if rounds is None and budget is None else budget
        self._order = random.Random(seed)
        self._rest, self._clock = rest, clock
        self._begin = clock()
        self._present = set(range(len(samples)))
        self._spent = [0.0] * len(samples)
        self._last = [0.0] * len(samples)

    def __iter__(self) -> Iterator[Turn]:
        for number in count(1):
            order = shuffled(self._wanted(number), self._order)
            if not order:
                return
            for position, index in enumerate(order):
                if number == 1 or self._affordable(index):
                    yield from self._turn(number, index, position / len(order))

    def _turn(self, number: int, index: int, part: float) -> Iterator[Turn]:
        """Yield a turn, and keep what it took."""
        begin, made = self._clock(), len(self._samples[index])
        if self._rest is not None:
            self._rest()  # it counts: else the rests of many short turns come on top of the budget
        yield Turn(number, index, self._share(number - 1 + part))
        self._last[index] = self._clock() - begin
        self._spent[index] += self._last[index]
        if len(self._samples[index]) == made:
            self._present.remove(index)

    def _wanted(self, number: int) -> list[int]:
        """Return who takes part in a round."""
        if self._rounds is not None and number > self._rounds:
            return []
        if number == 1:
            return sorted(self._present)
        able = [index for index in sorted(self._present) if self._affordable(index)]
        return able if self._rounds is not None else self._unsettled(able)

    def _unsettled(self, able: Sequence[int]) -> list[int]:
        """Return those that are not steady, and those that overlap with one of them."""
        intervals = {index: interval_of_median(self._samples[index]) for index in able}
        loose = [index for index in able if not self._is_steady(index, intervals[index])]
        return [
            index
            for index in able
            if any(_overlap(intervals[index], intervals[other]) for other in loose)
        ]

    def _is_steady(self, index: int, interval: tuple[float, float]) -> bool:
        samples = self._samples[index]
        narrow = interval[1] - interval[0] <= 2 * STEADY * median(samples)
        return narrow and len(samples) >= LEAST_ROUNDS

    def _affordable(self, index: int) -> bool:
        if self._budget is None:
            return True
        last, elapsed = self._last[index], self._clock() - self._begin
        own = self._budget / len(self._samples)
        return elapsed + last <= self._budget or self._spent[index] + last <= own

    def _share(self, over: float) -> float:
        """Return how much is over, of the rounds or of the budget, from 0 to 1."""
        rounds = 0.0 if self._rounds is None else over / self._rounds
        elapsed = self._clock() - self._begin
        return min(1.0, max(rounds, elapsed / self._budget if self._budget else 0.0))


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
