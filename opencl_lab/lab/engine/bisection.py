"""Finding the size from which on one side is faster, by bisection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from opencl_lab.lab.engine.crossings import Crossover, Verdict, crossovers, verdict
from opencl_lab.lab.engine.explore import PointGenerator
from opencl_lab.lab.engine.row import Measurement

CLOSE = 1.05  # bisection ends when the ratio of two sizes is at most this
MIDDLE = 0.4  # the middle of an interval is from this fraction to 1 minus it, on a log scale
STRIDE = 4  # ratio of successive sizes until one is found at which ours is faster


class Look(NamedTuple):
    """A point of the search: a size, and the references to run there; None: all of them."""

    size: int
    references: tuple[str, ...] | None


@dataclass
class Pair:
    """One of ours and a reference, with their rows and which was faster, by size."""

    implementation: str
    reference: str
    algorithm: str  # of the reference
    rows: dict[int, list[Measurement]] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    ended: bool = False  # one of them could not be measured: no larger size is tried
    tried: set[int] = field(default_factory=set)  # sizes that are not tried again

    def learn(self, size: int, rows: Mapping[str, Measurement]) -> None:
        """Record which is faster at a size, if the reference was run there."""
        ours, theirs = rows.get(self.implementation), rows.get(self.reference)
        if theirs is None:
            return
        if ours is None or not (ours.ok and theirs.ok and ours.total_ms and theirs.total_ms):
            self.ended = True
            return
        self.rows[size] = [ours, theirs]
        self.verdicts[size] = verdict(ours.total_ms, theirs.total_ms)

    def next(self, greatest: int) -> int | None:
        """Return the size to measure next; None: the search of this pair is complete."""
        size = self._unknown(greatest)
        return None if size in self.tried else size

    def _unknown(self, greatest: int) -> int | None:
        """Return the most useful size to measure.

        Sizes grow until ours is faster. Then come the greatest size, the bisection of the
        crossover, and that of the size from which on times overlap.
        """
        sizes = sorted(self.verdicts)
        # The sizes from which on ours was always faster.
        ahead = list(takewhile(lambda size: self.verdicts[size] == "faster", reversed(sizes)))
        last, above = sizes[-1], ahead[-1] if ahead else None
        if last < greatest and not self.ended:
            return greatest if above is not None else min(last * STRIDE, greatest)
        before = sizes[: len(sizes) - len(ahead)]
        if above is None or not before:
            return None
        return _between(before[-1], above) or self._between_levels(before)

    def crossover(self) -> Crossover:
        """Return the crossover as known so far."""
        (found,) = crossovers(sorted(self.rows.items()))
        return found

    def _between_levels(self, before: Sequence[int]) -> int | None:
        """Return a size between the last one at which ours is slower and the next one."""
        slower = [index for index, size in enumerate(before) if self.verdicts[size] == "slower"]
        if not slower or slower[-1] == len(before) - 1:
            return None
        return _between(before[slower[-1]], before[slower[-1] + 1])


def _between(low: int, high: int) -> int | None:
    """Return a size near the middle, on a logarithmic scale; None if the two are close.

    It is the size there with the most factors of two, since an FFT of other sizes may take
    several times as long, and times would not grow with the size.
    """
    if high - low < 2 or high <= low * CLOSE:
        return None
    first = max(math.ceil(low * math.pow(high / low, MIDDLE)), low + 1)
    last = min(math.floor(low * math.pow(high / low, 1 - MIDDLE)), high - 1)
    if last <= first:
        return min(first, high - 1)
    step = 1 << (last - first).bit_length()
    while last // step * step < first:
        step //= 2
    return last // step * step


class CrossoverSearch:
    """Finds from which size on each of ours is faster than each reference.

    It assumes that a pair has one crossover, after which ours stays faster. That is checked only
    at the sizes that the searches of all pairs measure, and at the greatest size.
    The least size is at least 1.
    """

    def __init__(self, least: int, greatest: int):
        self._least, self._greatest = least, greatest
        self._rows: dict[int, dict[str, Measurement]] = {}
        self.pairs: list[Pair] = []  # those that could be measured at the least size

    @property
    def series(self) -> list[tuple[int, list[Measurement]]]:
        """The measured sizes in order, with their rows."""
        return [(size, list(rows.values())) for size, rows in sorted(self._rows.items())]

    def points(self) -> PointGenerator[Look, Sequence[Measurement]]:
        """Yield points until all crossovers are found; `pairs` has intermediate results."""
        first = self._learn(self._least, (yield Look(self._least, None)))
        able = [row for row in first.values() if row.ok and row.total_ms]
        self.pairs = [
            Pair(one.implementation, other.implementation, other.algorithm)
            for one in able
            for other in able
            if one.kind == "opencl" != other.kind and one.data == other.data
        ]
        for pair in self.pairs:
            pair.learn(self._least, first)
        while True:
            next_sizes = [(pair.next(self._greatest), pair.algorithm) for pair in self.pairs]
            # Small sizes come first: they are quick, and predict the time of larger ones.
            size = min((size for size, _ in next_sizes if size is not None), default=None)
            if size is None:
                return
            names = dict.fromkeys(name for at, name in next_sizes if at == size)
            for pair, (at, _) in zip(self.pairs, next_sizes, strict=True):
                if at == size:
                    pair.tried.add(size)
            self._learn(size, (yield Look(size, tuple(names))))

    def _learn(self, size: int, rows: Sequence[Measurement]) -> dict[str, Measurement]:
        """Record rows in all pairs, and return them by name."""
        found = {row.implementation: row for row in rows}
        kept = self._rows.setdefault(size, {})
        for name, row in found.items():
            kept.setdefault(name, row)
        for pair in self.pairs:
            pair.learn(size, found)
        return found
