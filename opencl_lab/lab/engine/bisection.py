"""From which size on one side is faster, found by bisection over sizes rather than on a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from opencl_lab.lab.engine.crossings import Crossover, Verdict, crossovers, verdict
from opencl_lab.lab.engine.explore import PointGenerator
from opencl_lab.lab.engine.row import Measurement

CLOSE = 1.05  # ratio of sizes between which nothing more is measured
MIDDLE = 0.4  # of the way between two sizes, on a logarithmic scale, where the middle begins
STRIDE = 4  # ratio of sizes until the first is found where ours is faster


class Look(NamedTuple):
    """What the search asks for: ours at a size, and these references; None: all of them."""

    size: int
    references: tuple[str, ...] | None


@dataclass
class Pair:
    """One of ours and a reference: their rows and who was faster, by the sizes measured so far."""

    implementation: str
    reference: str
    algorithm: str  # of the reference
    rows: dict[int, list[Measurement]] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    ended: bool = False  # one of them could not be measured at a size: no larger one is tried
    tried: set[int] = field(default_factory=set)  # sizes, which are not tried twice

    def learn(self, size: int, rows: Mapping[str, Measurement]) -> None:
        """Note who is faster at a size, if the reference was asked for there."""
        ours, theirs = rows.get(self.implementation), rows.get(self.reference)
        if theirs is None:
            return
        if ours is None or not (ours.ok and theirs.ok and ours.total_ms and theirs.total_ms):
            self.ended = True
            return
        self.rows[size] = [ours, theirs]
        self.verdicts[size] = verdict(ours.total_ms, theirs.total_ms)

    def next(self, greatest: int) -> int | None:
        """Return the size to measure next; None: all is known that can be."""
        size = self._unknown(greatest)
        return None if size in self.tried else size

    def _unknown(self, greatest: int) -> int | None:
        """Return the size that would tell most.

        Sizes grow until ours is faster, then the greatest is looked at, then the crossover is
        bisected, and at last the size from which the times overlap.
        """
        sizes = sorted(self.verdicts)
        # Those from which on ours was faster throughout come last.
        ahead = list(takewhile(lambda size: self.verdicts[size] == "faster", reversed(sizes)))
        last, above = sizes[-1], ahead[-1] if ahead else None
        if last < greatest and not self.ended:
            return greatest if above is not None else min(last * STRIDE, greatest)
        before = sizes[: len(sizes) - len(ahead)]
        if above is None or not before:
            return None
        return _between(before[-1], above) or self._between_levels(before)

    def crossover(self) -> Crossover:
        """Return what was found so far."""
        (found,) = crossovers(sorted(self.rows.items()))
        return found

    def _between_levels(self, before: Sequence[int]) -> int | None:
        """Return a size between the last at which ours is slower and the next."""
        slower = [index for index, size in enumerate(before) if self.verdicts[size] == "slower"]
        if not slower or slower[-1] == len(before) - 1:
            return None
        return _between(before[slower[-1]], before[slower[-1] + 1])


def _between(low: int, high: int) -> int | None:
    """Return a size about in the middle, on a logarithmic scale, unless these are close.

    It is the one with the most factors of two there: an FFT of other sizes may take several
    times as long, so that times would not grow with the size.
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

    One crossover of a pair is taken for granted: that ours stays faster once it is. That is
    looked at only at the sizes that the search of any pair measures, and at the greatest.
    The least size is at least 1.
    """

    def __init__(self, least: int, greatest: int):
        self._least, self._greatest = least, greatest
        self._rows: dict[int, dict[str, Measurement]] = {}
        self.pairs: list[Pair] = []  # those that could be measured at the least size

    @property
    def series(self) -> list[tuple[int, list[Measurement]]]:
        """The sizes that were measured, the smallest first, with their rows."""
        return [(size, list(rows.values())) for size, rows in sorted(self._rows.items())]

    def strategy(self) -> PointGenerator[Look, Sequence[Measurement]]:
        """Ask until all crossovers are found; what is stopped may be looked at."""
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
            # Small sizes are quick, and tell how long large ones take.
            size = min((size for size, _ in next_sizes if size is not None), default=None)
            if size is None:
                return
            names = dict.fromkeys(name for at, name in next_sizes if at == size)
            for pair, (at, _) in zip(self.pairs, next_sizes, strict=True):
                if at == size:
                    pair.tried.add(size)
            self._learn(size, (yield Look(size, tuple(names))))

    def _learn(self, size: int, rows: Sequence[Measurement]) -> dict[str, Measurement]:
        """Tell all pairs, keep the rows that are new at this size, and return all by name."""
        found = {row.implementation: row for row in rows}
        kept = self._rows.setdefault(size, {})
        for name, row in found.items():
            kept.setdefault(name, row)
        for pair in self.pairs:
            pair.learn(size, found)
        return found
