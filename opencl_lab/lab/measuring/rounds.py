"""Scheduling of samples: participants take turns in rounds until their medians are precise.

```text
 round 1   c b a d        each takes one sample, in an order that is shuffled for each round
 round 2   a d c b
   ...
 round 5   b a d c        from now on participants with a precise median stop, unless their
 round 6   d a            interval overlaps one that is not: to compare them, both go on
   ...                    until all are precise, or the time is up
```

Turns spread changes of the machine's speed over all participants. In a fixed order, each would
always run after the same other one, with the caches as that one leaves them.
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
"""The fewest samples that show a spread."""
STEADY = 0.02
"""A median is precise if half the width of its interval is at most this fraction of it."""
BUDGET = 10.0
"""Default time limit in seconds for all participants together."""

POLL_SECONDS = 0.005
"""Interval in which the processor time is measured: threads that spin use it, those asleep none."""
IDLE_SHARE = 0.1
"""Largest share of a processor that an idle process uses."""
LONGEST_SECONDS = 0.5
"""After so long a thread is assumed to spin forever."""

T = TypeVar("T")


class Turn(NamedTuple):
    """One turn: its round, from 1; the participant; and the fraction of all rounds or time used."""

    number: int
    participant: int
    share: float


def shuffled(participants: Sequence[T], order: random.Random) -> list[T]:
    """Return the participants in a random order."""
    return order.sample(participants, len(participants))


class Rounds:
    """The turns of several participants, to be iterated over once.

    The caller takes the sample of each turn and appends it to the samples of that participant. A
    participant to whose samples nothing was appended gets no further turn.

    Each participant gets a first turn, however long it takes. Later turns are taken only if one
    as long as the participant's last one still fits into the budget, or into the participant's
    equal share of it. So a slow one does not use up the time of others, and all turns but the
    first ones take at most the budget.

    Parameters
    ----------
    samples : sequence of sequences of float
        The samples of each participant, to which the caller appends.
    rounds : int, optional
        The number of rounds, unless the budget ends before. By default at least `LEAST_ROUNDS`,
        and more until all medians are precise.
    budget : float, optional
        Seconds for all turns together. By default `BUDGET`, or no limit if `rounds` is given.
    seed : int
        Seed of the orders.
    quiesce : callable, optional
        Called at the start of each turn; its time belongs to the turn.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        samples: Sequence[Sequence[float]],
        rounds: int | None = None,
        budget: float | None = None,
        *,
        seed: int = 0,
        quiesce: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._samples, self._rounds = samples, rounds
        self._budget = BUDGET if rounds is None and budget is None else budget
        self._order = random.Random(seed)
        self._quiesce, self._clock = quiesce, clock
        self._begin = clock()
        self._present = set(range(len(samples)))
        self._spent = [0.0] * len(samples)
        self._last = [0.0] * len(samples)

    def __iter__(self) -> Iterator[Turn]:
        for number in count(1):
            order = shuffled(self._participants(number), self._order)
            if not order:
                return
            for position, index in enumerate(order):
                if number == 1 or self._affordable(index):
                    yield from self._turn(number, index, position / len(order))

    def _turn(self, number: int, index: int, share: float) -> Iterator[Turn]:
        """Yield a turn and add its time to what the participant has spent."""
        begin, made = self._clock(), len(self._samples[index])
        if self._quiesce is not None:
            self._quiesce()  # timed: else many short turns would exceed the budget
        yield Turn(number, index, self._share(number - 1 + share))
        self._last[index] = self._clock() - begin
        self._spent[index] += self._last[index]
        if len(self._samples[index]) == made:
            self._present.remove(index)

    def _participants(self, number: int) -> list[int]:
        """Return the participants of a round."""
        if self._rounds is not None and number > self._rounds:
            return []
        if number == 1:
            return sorted(self._present)
        able = [index for index in sorted(self._present) if self._affordable(index)]
        return able if self._rounds is not None else self._unsettled(able)

    def _unsettled(self, able: Sequence[int]) -> list[int]:
        """Return those without a precise median, and those whose interval overlaps one of them."""
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

    def _share(self, done: float) -> float:
        """Return the fraction of the rounds or of the budget that is used, from 0 to 1."""
        rounds = 0.0 if self._rounds is None else done / self._rounds
        elapsed = self._clock() - self._begin
        return min(1.0, max(rounds, elapsed / self._budget if self._budget else 0.0))


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def quiesce(
    clock: Callable[[], float] = time.perf_counter,
    used: Callable[[], float] = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no thread of this process is busy.

    Threads of OpenBLAS spin for 100 ms after a product, those of OpenMP for some milliseconds,
    and take processors from the next measurement: a product of ours that takes turns with
    NumPy's then looks half as fast as it is.

    `clock` and `used` return the time and the processor time of this process, in seconds.
    """
    begin = clock()
    while clock() - begin < LONGEST_SECONDS:
        polled, before = clock(), used()
        sleep(POLL_SECONDS)
        if used() - before <= IDLE_SHARE * (clock() - polled):
            return
