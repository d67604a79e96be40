"""Where one implementation overtakes another, over a range of sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal, TypeAlias

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times

FEW = 6
"""Sizes that are listed one by one."""

Verdict: TypeAlias = Literal["faster", "slower", "level"]


@dataclass(frozen=True)
class Crossover:
    """From which size on one implementation is faster than another.

    One is faster where its slowest run took less time than the fastest of the other; of more
    than eight runs single outliers do not count (`Times.interval`).
    `size` is interpolated between the last measured size at which it is slower and the next
    one, on logarithmic scales. None says that it is not faster at the largest size measured,
    and a `size` equal to the smallest one measured that it is faster throughout.
    """

    implementation: str
    reference: str
    size: float | None
    level: tuple[int, ...] = ()
    """The measured sizes just before `size` where the runs of both overlap.

    Then nothing is interpolated: `size` is the first measured one from which it is faster.
    """
    ahead: tuple[int, ...] = ()  # where it is faster, if it is not faster for good
    up_to: int | None = None  # the largest size of both, if that is not the largest of all
    at: int | None = None  # the only size of both, if there is one only
    behind: tuple[int, ...] = ()  # all sizes at which it is slower

    def __str__(self) -> str:
        if self.at is not None and not self.level:
            word = "slower" if self.size is None else "faster"
            return f"{self.implementation} is {word} than {self.reference} at {self.at}"
        return self._sentence() + f", as measured up to {self.up_to}" * (self.up_to is not None)

    def _sentence(self) -> str:
        ours, theirs = self.implementation, self.reference
        level = f"level within noise at {sizes_text(self.level)}" if self.level else ""
        slower = sizes_text(self.behind)
        more = f", {level}" * bool(level) + f", slower at {slower}" * bool(slower)
        if self.size is not None:
            return f"{ours} is faster than {theirs} from {self.about}{self.size_text} on{more}"
        if self.ahead:
            return f"{ours} is faster than {theirs} only at {sizes_text(self.ahead)}{more}"
        if level and slower:
            return f"{ours} is slower than {theirs} at {slower}, {level}"
        if level:
            return f"{ours} and {theirs} are {level}"
        return f"{ours} stays slower than {theirs}"

    @property
    def size_text(self) -> str:
        """The size if it was measured, three digits of one that was interpolated."""
        if self.size is None:
            return ""
        return f"{float(f'{self.size:.3g}'):.7g}" if self.about else f"{self.size:.0f}"

    @property
    def about(self) -> str:
        """What stands before a size that was interpolated; nothing for one that was measured."""
        return "" if self.size is None or float(self.size).is_integer() else "about "


def sizes_text(sizes: Sequence[int], name: str = "") -> str:
    """Return sizes in words; of many only the first and the last, and how many there are."""
    if len(sizes) > FEW:
        return f"{len(sizes)} sizes from {name}{sizes[0]} to {sizes[-1]}"
    return name + ", ".join(map(str, sizes))


def crossovers(series: Sequence[tuple[int, Sequence[Measurement]]]) -> list[Crossover]:
    """Return the crossovers of OpenCL algorithms with each other, and with all references.

    Of two algorithms the one that is faster at the largest size is named first; variants
    of one algorithm are not set against each other, nor data on the host and on the device.
    """
    times: dict[str, dict[int, Times]] = {}
    of: dict[str, Measurement] = {}  # a row of each, by name
    for size, rows in series:
        for row in rows:
            if row.ok and row.total_ms is not None and row.total_ms.median > 0:
                times.setdefault(row.implementation, {})[size] = row.total_ms
                of[row.implementation] = row

    def pairs(name: str, other: str) -> list[_Pair]:
        if of[name].data != of[other].data:
            return []
        # Logarithms of sizes have no 0, where there is nothing to do.
        sizes = sorted(size for size in times[name].keys() & times[other].keys() if size > 0)
        return [_Pair(size, times[name][size], times[other][size]) for size in sizes]

    largest = max((size for size, _ in series), default=0)

    def crossing(name: str, other: str) -> Crossover:
        both = pairs(name, other)
        up_to = both[-1].size
        at = up_to if len(both) == 1 else None
        behind = tuple(pair.size for pair in both if pair.verdict == "slower")
        end = up_to if up_to < largest else None
        return Crossover(name, other, *_crossing(both), end, at, behind)

    ours = [name for name, row in of.items() if row.kind == "opencl"]
    found = []
    for one, two in combinations(ours, 2):
        if of[one].algorithm != of[two].algorithm and pairs(one, two):
            faster = pairs(one, two)[-1].ratio < 1
            found.append(crossing(one, two) if faster else crossing(two, one))
    for name, other in product(ours, of):
        if of[other].kind != "opencl" and pairs(name, other):
            found.append(crossing(name, other))
    return found


@dataclass(frozen=True)
class _Pair:
    """What two implementations took at one size."""

    size: int
    ours: Times
    theirs: Times

    @property
    def ratio(self) -> float:
        return self.ours.median / self.theirs.median

    @property
    def verdict(self) -> Verdict:
        return verdict(self.ours, self.theirs)


def verdict(ours: Times, theirs: Times) -> Verdict:
    """Return whether ours took less time beyond noise, more, or neither."""
    if theirs.is_above(ours):
        return "faster"
    return "slower" if ours.is_above(theirs) else "level"


def _crossing(pairs: Sequence[_Pair]) -> tuple[float | None, tuple[int, ...], tuple[int, ...]]:
    """Return `size`, `level` and `ahead` of a `Crossover`."""
    first = next((i for i in range(len(pairs), 0, -1) if pairs[i - 1].verdict != "faster"), 0)
    start = next((i for i in range(first, 0, -1) if pairs[i - 1].verdict == "slower"), 0)
    level = tuple(pair.size for pair in pairs[start:first] if pair.verdict != "faster")
    if first == len(pairs):
        return None, level, tuple(pair.size for pair in pairs if pair.verdict == "faster")
    if first == 0 or level:
        return float(pairs[first].size), level, ()
    below, above = pairs[first - 1], pairs[first]
    share = math.log(below.ratio) / (math.log(below.ratio) - math.log(above.ratio))
    return float(below.size * (above.size / below.size) ** share), (), ()
