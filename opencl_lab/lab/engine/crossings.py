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
"""Up to this many sizes are listed one by one."""

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
    def level_before(self) -> bool:
        """Whether the times of both overlap at the last measured size before `size`."""
        return max(self.level, default=0) > max(self.behind, default=0)

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


def crossovers(series: Sequence[tuple[int, Sequence[Measurement]]]) -> list[Crossover]:
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

    def pairs(name: str, other: str) -> list[_Pair]:
        if of[name].data != of[other].data:
            return []
        # 0 has no logarithm, and problems of that size are empty.
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
    """The times of two implementations at one size."""

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
    """Return whether ours is faster beyond noise, slower, or level."""
    if theirs.is_above(ours):
        return "faster"
    return "slower" if ours.is_above(theirs) else "level"


def _crossing(pairs: Sequence[_Pair]) -> tuple[float | None, tuple[int, ...], tuple[int, ...]]:
    """Return `size`, `level` and `ahead` of a `Crossover`."""
    first = next((i for i in range(len(pairs), 0, -1) if pairs[i - 1].verdict != "faster"), 0)
    level = tuple(pair.size for pair in pairs if pair.verdict == "level")
    if first == len(pairs):
        return None, level, tuple(pair.size for pair in pairs if pair.verdict == "faster")
    if first == 0 or pairs[first - 1].verdict == "level":
        return float(pairs[first].size), level, ()
    below, above = pairs[first - 1], pairs[first]
    share = math.log(below.ratio) / (math.log(below.ratio) - math.log(above.ratio))
    return float(below.size * (above.size / below.size) ** share), level, ()
