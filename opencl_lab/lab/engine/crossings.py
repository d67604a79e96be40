"""Where one implementation overtakes another, over a range of sizes, and the search for it."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from typing import Literal, NamedTuple, TypeAlias

from opencl_lab.lab.engine.explore import PointGenerator
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.measuring.samples import Times

FEW = 6
"""Up to this many sizes are listed one by one."""
CLOSE = 1.05
"""Bisection ends when the ratio of two sizes is at most this."""
MIDDLE = 0.4
"""The middle of an interval is from this fraction to 1 minus it, on a log scale."""
STRIDE = 4
"""Ratio of successive sizes until one is found at which ours is faster."""

Verdict: TypeAlias = Literal["faster", "slower", "level"]


@dataclass(frozen=True)
class Crossover:
    """The size from which on one implementation is faster than another.

    One is faster at a size if its slowest sample took less time than the fastest of the other;
    with more than eight samples, outliers do not count (`Times.interval`).
    `size` is interpolated between the last measured size at which it is slower and the next
    one, on logarithmic scales. It is None if it is not faster at the largest measured size,
    and the smallest measured size if it is faster at all sizes.
    """

    implementation: str
    reference: str
    size: float | None
    level: tuple[int, ...] = ()
    """The measured sizes at which the times of both overlap.

    If one is just before `size`, that is not interpolated, but the first measured one from which
    on it is faster.
    """
    ahead: tuple[int, ...] = ()  # sizes at which it is faster, if `size` is None
    up_to: int | None = None  # the largest size with both, if that is not the largest of all
    at: int | None = None  # the size with both, if there is only one
    behind: tuple[int, ...] = ()  # all sizes at which it is slower

    def __str__(self) -> str:
        return self.said()

    def said(self, axis: str = "") -> str:
        """Return the crossover as a sentence without a point; `axis` names the sizes."""
        where = f"{axis}=" * bool(axis)
        pair = f"{self.reference} at {where}{self.at}"
        if self.at is not None and not self.level:
            word = "slower" if self.size is None else "faster"
            return f"{self.implementation} is {word} than {pair}"
        return self._sentence(where) + f", as measured up to {self.up_to}" * bool(self.up_to)

    def _sentence(self, where: str) -> str:
        ours, theirs = self.implementation, self.reference
        level = f"level within noise at {sizes_text(self.level, where)}" * bool(self.level)
        slower = sizes_text(self.behind, where) if self.behind else ""
        more = f", {level}" * bool(level) + f", slower at {slower}" * bool(slower)
        if self.size is not None:
            begin = f"{self.about}{where}{self.size_text}"
            return f"{ours} is faster than {theirs} from {begin} on{more}"
        if self.ahead:
            ahead = sizes_text(self.ahead, where)
            return f"{ours} is faster than {theirs} only at {ahead}{more}"
        if level and slower:
            return f"{ours} is slower than {theirs} at {slower}, {level}"
        return f"{ours} and {theirs} are {level}" if level else f"{ours} stays slower than {theirs}"

    @property
    def size_text(self) -> str:
        """The size as text, with three digits if it is interpolated."""
        if self.size is None:
            return ""
        return f"{float(f'{self.size:.3g}'):.7g}" if self.about else f"{self.size:.0f}"

    @property
    def about(self) -> str:
        """``"about "`` if the size is interpolated, else empty."""
        return "" if self.size is None or float(self.size).is_integer() else "about "


def sizes_text(sizes: Sequence[int], name: str = "") -> str:
    """Return sizes as text; for many only their number, the first and the last."""
    if len(sizes) > FEW:
        return f"{len(sizes)} sizes from {name}{sizes[0]} to {sizes[-1]}"
    return name + ", ".join(map(str, sizes))


def crossovers(series: Series) -> list[Crossover]:
    """Return the crossovers of OpenCL algorithms with each other, and with all references.

    Of two algorithms the one that is faster at the largest size is named first. Variants
    of one algorithm are not compared with each other, nor are host data with device data.
    """
    times: dict[str, dict[int, Times]] = {}
    of: dict[str, Measurement] = {}  # a row of each, by name
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None and row.total_ms.median > 0:
                times.setdefault(row.implementation, {})[size] = row.total_ms
                of[row.implementation] = row

    def both(name: str, other: str) -> list[_AtSize]:
        # 0 has no logarithm, and problems of that size are empty.
        sizes = sorted(size for size in times[name].keys() & times[other].keys() if size > 0)
        alike = of[name].data == of[other].data
        return [_AtSize(size, times[name][size], times[other][size]) for size in sizes * alike]

    ours = [name for name, row in of.items() if row.kind == "opencl"]
    pairs = []
    for one, two in combinations(ours, 2):
        if of[one].algorithm != of[two].algorithm and (found := both(one, two)):
            pairs.append((one, two) if found[-1].ratio < 1 else (two, one))
    pairs += ((name, other) for name in ours for other in of if of[other].kind != "opencl")
    largest = max((size for size, _ in series), default=0)
    return [_crossover(*pair, found, largest) for pair in pairs if (found := both(*pair))]


class _AtSize(NamedTuple):
    """The times of two implementations at one size."""

    size: int
    ours: Times
    theirs: Times

    @property
    def ratio(self) -> float:
        return self.ours.median / self.theirs.median


def verdict(ours: Times, theirs: Times) -> Verdict:
    """Return whether ours is faster beyond noise, slower, or level."""
    if theirs.is_above(ours):
        return "faster"
    return "slower" if ours.is_above(theirs) else "level"


def _crossover(name: str, other: str, pairs: Sequence[_AtSize], largest: int) -> Crossover:
    verdicts = [verdict(pair.ours, pair.theirs) for pair in pairs]
    first = next((i for i in range(len(pairs), 0, -1) if verdicts[i - 1] != "faster"), 0)
    size = None if first == len(pairs) else float(pairs[first].size)
    if size is not None and first > 0 and verdicts[first - 1] == "slower":
        below, above = pairs[first - 1], pairs[first]
        share = math.log(below.ratio) / (math.log(below.ratio) - math.log(above.ratio))
        size = below.size * (above.size / below.size) ** share

    def at(word: Verdict) -> tuple[int, ...]:
        return tuple(x.size for x, found in zip(pairs, verdicts, strict=True) if found == word)

    up_to = pairs[-1].size
    return Crossover(
        name,
        other,
        size,
        level=at("level"),
        ahead=at("faster") if size is None else (),
        up_to=up_to if up_to < largest else None,
        at=up_to if len(pairs) == 1 else None,
        behind=at("slower"),
    )


# ------------------------------------------------------------------------------------ the search


class Look(NamedTuple):
    """A point of the search: a size, and the references to run there; None: all of them."""

    size: int
    references: tuple[str, ...] | None


@dataclass
class Pair:
    """One of ours and a reference, with their rows by size."""

    implementation: str
    reference: str
    algorithm: str  # of the reference
    rows: dict[int, list[Measurement]] = field(default_factory=dict)
    ended: bool = False  # one of them could not be measured: no larger size is tried
    tried: set[int] = field(default_factory=set)  # sizes that are not tried again

    def learn(self, size: int, rows: Mapping[str, Measurement]) -> None:
        """Record the rows of a size, if the reference was run there."""
        ours, theirs = rows.get(self.implementation), rows.get(self.reference)
        if theirs is None:
            return
        if ours is None or not (ours.ok and theirs.ok and ours.total_ms and theirs.total_ms):
            self.ended = True
        else:
            self.rows[size] = [ours, theirs]

    def next(self, greatest: int) -> int | None:
        """Return the size to measure next; None: the search of this pair is complete.

        Sizes grow until ours is faster. Then come the greatest size, and the bisection between the
        last size at which it is not faster and the next one.
        """
        sizes = sorted(self.rows)
        ahead = list(takewhile(self._is_faster, reversed(sizes)))
        before = sizes[: len(sizes) - len(ahead)]
        size = None
        if sizes[-1] < greatest and not self.ended:
            size = greatest if ahead else min(sizes[-1] * STRIDE, greatest)
        elif ahead and before:
            size = _between(before[-1], ahead[-1])
        return None if size in self.tried else size

    def _is_faster(self, size: int) -> bool:
        ours, theirs = (row.total_ms for row in self.rows[size])
        return ours is not None and theirs is not None and theirs.is_above(ours)

    def crossover(self) -> Crossover:
        """Return the crossover as known so far."""
        (found,) = crossovers(sorted(self.rows.items()))
        return found


def _between(low: int, high: int) -> int | None:
    """Return a size near the middle, on a logarithmic scale; None if the two are close.

    It is the size there with the most factors of two, since an FFT of other sizes may take
    several times as long, and times would not grow with the size.
    """
    if high - low < 2 or high <= low * CLOSE:
        return None
    first = max(math.ceil(low * math.pow(high / low, MIDDLE)), low + 1)
    last = min(math.floor(low * math.pow(high / low, 1 - MIDDLE)), high - 1)
    step = 1 << max(last - first, 0).bit_length()
    while step > 1 and last // step * step < first:
        step //= 2
    return max(last // step * step, low + 1)


class CrossoverSearch:
    """Finds from which size on each of ours is faster than each reference, by bisection.

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
        able = [row for row in (yield from self._asked(Look(self._least, None))) if row.ok]
        self.pairs = [
            Pair(one.implementation, other.implementation, other.algorithm)
            for one in able
            for other in able
            if one.kind == "opencl" != other.kind and one.data == other.data
            if one.total_ms and other.total_ms
        ]
        for pair in self.pairs:
            pair.learn(self._least, self._rows[self._least])
        while True:
            wanted = [(size, pair) for pair in self.pairs if (size := pair.next(self._greatest))]
            if not wanted:
                return
            # Small sizes come first: they are quick, and predict the time of larger ones.
            size = min(size for size, _ in wanted)
            pairs = [pair for at, pair in wanted if at == size]
            for pair in pairs:
                pair.tried.add(size)
            yield from self._asked(Look(size, tuple(dict.fromkeys(x.algorithm for x in pairs))))

    def _asked(
        self, look: Look
    ) -> Generator[Look | list[Look], Sequence[Measurement], Sequence[Measurement]]:
        """Yield a point, and record its rows in all pairs."""
        rows = yield look
        kept = self._rows.setdefault(look.size, {})
        for row in rows:
            kept.setdefault(row.implementation, row)
        for pair in self.pairs:
            pair.learn(look.size, {row.implementation: row for row in rows})
        return rows
