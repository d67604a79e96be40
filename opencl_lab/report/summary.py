"""Sentences drawn from measured rows: who is fastest where, crossovers, what failed and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opencl_lab.comparison.measure import Measurement, Side
from opencl_lab.comparison.sweep import Crossover, Verdict, crossovers, verdict
from opencl_lab.comparison.table import number
from opencl_lab.report.sweeps import Sweep
from opencl_lab.wording import counted

__all__ = [
    "SIDES",
    "Trouble",
    "are_level",
    "size_range",
    "standings_of",
    "summary_of",
    "times_text",
    "troubles_of",
]

SHOWN_SIZES = 4  # that are named one by one
SHOWN_NAMES = 3
MOST_RANGES = 6  # of sizes with a winner each, before only their numbers are said
FEWEST_RUNS = 4  # of each: those of equal speed lie apart by luck in less than one of twenty cases
MOST_TROUBLES = 20
SIDES: tuple[Side, ...] = ("host", "device")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def summary_of(sweep: Sweep) -> list[str]:
    """Return what the rows say of speed."""
    sentences = []
    for side in SIDES:
        sentences += _of_side(sweep, side)
    return sentences or ["Nothing was measured with a right result."]


def standings_of(sweep: Sweep) -> list[Verdict]:
    """Return how the fastest of ours stands against the fastest other at the largest size.

    One for each side of the data on which both were measured.
    """
    found: list[Verdict] = []
    for side in SIDES:
        last = next((x for _, rows in reversed(sweep.series) if (x := _ranked(rows, side))), [])
        ours = next((row for row in last if row.kind == "opencl"), None)
        other = next((row for row in last if row.kind != "opencl"), None)
        if ours is not None and other is not None:
            assert ours.total_ms is not None and other.total_ms is not None
            found.append(verdict(ours.total_ms, other.total_ms))
    return found


def _of_side(sweep: Sweep, side: Side) -> list[str]:
    series = [(size, _ranked(rows, side)) for size, rows in sweep.series]
    series = [(size, ranked) for size, ranked in series if ranked]
    if not series:
        return []
    place = " with the data on the device" if side == "device" else ""
    if any(len(ranked) > 1 for _, ranked in series):
        sentences = [f"Fastest by total time{place}: {_winners(sweep, series)}."]
    else:
        sentences = [f"Only {series[0][1][0].implementation} was measured{place}."]
    size, ranked = series[-1]
    if len(ranked) > 1:
        sentences.append(_at_the_end(sweep, size, ranked))
    ours = next((row for row in ranked if row.kind == "opencl"), None)
    if ours is not None and sweep.varied:
        sentences += _crossings(sweep, ours)
    return sentences + _doubt(series)


def _ranked(rows: Sequence[Measurement], side: Side) -> list[Measurement]:
    """Return the right rows of one side, the fastest first."""
    right = [row for row in rows if row.ok and row.total_ms is not None and row.data == side]
    return sorted(right, key=_milliseconds)


def _milliseconds(row: Measurement) -> float:
    assert row.total_ms is not None  # all that are ranked have times
    return row.total_ms.median


def are_level(one: Measurement, two: Measurement) -> bool:
    """Return whether the times of two rows overlap."""
    assert one.total_ms is not None and two.total_ms is not None
    return one.total_ms.is_level_with(two.total_ms)


def _leaders(ranked: Sequence[Measurement]) -> list[str]:
    """Return the fastest and all whose times overlap with its, the fastest first."""
    return [row.implementation for row in ranked if are_level(row, ranked[0])]


def _winners(sweep: Sweep, series: Sequence[tuple[int, list[Measurement]]]) -> str:
    """Name the fastest by ranges of sizes, within which the same ones lead or are level."""
    leaders = [(size, _leaders(ranked)) for size, ranked in series]
    if not sweep.varied:
        return _lead_text(leaders[0][1])
    alone = {size: names[0] for size, names in leaders if len(names) == 1}
    ranges: list[tuple[list[str], list[int]]] = []
    for size, names in leaders:
        common = [name for name in ranges[-1][0] if name in names] if ranges else []
        if common:
            ranges[-1] = (common, [*ranges[-1][1], size])
        else:
            ranges.append((names, [size]))
    if len(ranges) == 1:
        (names, sizes) = ranges[0]
        return f"{_lead_text(names)} at every size{_shared(names, sizes, alone)}"
    if len(ranges) > MOST_RANGES:
        counts = Counter(names[0] for _, names in leaders)
        parts = [f"{name} at {count} of {len(leaders)} sizes" for name, count in counts.items()]
        return _listed(parts)
    parts = []
    for index, (names, sizes) in enumerate(ranges):
        last = index == len(ranges) - 1
        where = _where(sizes, not index, last)
        parts.append(f"{_lead_text(names)} {where}{_shared(names, sizes, alone)}")
    return f"{', '.join(parts)} ({sweep.axis})"


def _shared(names: Sequence[str], sizes: Sequence[int], alone: Mapping[int, str]) -> str:
    """Say where others are level with the only one that leads, or is level, in all of a range."""
    level = [size for size in sizes if size not in alone]
    if len(names) > 1 or not level:
        return ""
    where = "throughout" if len(level) == len(sizes) else f"at {size_range(level)}"
    return f" (level with others {where})"


def _lead_text(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = names if len(names) <= SHOWN_NAMES else [*names[:SHOWN_NAMES], "others"]
    return f"{_listed(shown)} (level within noise)"


def _where(sizes: Sequence[int], first: bool, last: bool) -> str:
    if len(sizes) == 1:
        return f"at {sizes[0]:,}"
    if last:
        return f"from {sizes[0]:,} on"
    return f"up to {sizes[-1]:,}" if first else f"from {sizes[0]:,} to {sizes[-1]:,}"


def _at_the_end(sweep: Sweep, size: int, ranked: Sequence[Measurement]) -> str:
    """Say what the largest size took: the fastest, what is level, and the next beyond noise."""
    first = ranked[0]
    level = [row for row in ranked[1:] if are_level(row, first)]
    slower = [row for row in ranked[1:] if not are_level(row, first)]
    where = f"At {sweep.axis} = {size:,}, " if sweep.varied else ""
    text = f"{where}{first.implementation} takes {number(_milliseconds(first), 3)} ms"
    if level:
        shown = [_beside(row, first) for row in level[:SHOWN_NAMES]]
        more = [f"{len(level) - SHOWN_NAMES} more"] if len(level) > SHOWN_NAMES else []
        text += f", level within noise with {_listed([*shown, *more])}"
    if slower:
        text += f"; the next, {slower[0].implementation}, {_ratio(slower[0], first)} as long"
    ours = first.kind == "opencl"
    other = next((row for row in ranked[1:] if (row.kind == "opencl") != ours), None)
    if other is None or other in level or other is slower[0]:
        return f"{text}."
    kind = "of the others" if ours else "of OpenCL"
    return f"{text}; the first {kind}, {other.implementation}, {_ratio(other, first)} as long."


def _ratio(row: Measurement, first: Measurement) -> str:
    ratio = _milliseconds(row) / _milliseconds(first) if _milliseconds(first) else 1.0
    return f"{times_text(ratio)} times"


def times_text(ratio: float) -> str:
    """Return how many times as long: 1.00 rather than 1, and where that is all 1.004."""
    digits = 3 if abs(ratio - 1) < 0.01 else 2
    return f"{ratio:.{digits}f}" if 0.1 <= ratio < 9.995 else number(ratio, 3)


def _beside(row: Measurement, first: Measurement) -> str:
    return f"{row.implementation} ({_ratio(row, first)})"


def _doubt(series: Sequence[tuple[int, list[Measurement]]]) -> list[str]:
    """Say that rows have too few runs to know their noise, if they do."""
    runs = [row.total_ms.runs for _, ranked in series for row in ranked if row.total_ms]
    least = min(runs)
    if least >= FEWEST_RUNS:
        return []
    some = "some" if max(runs) >= FEWEST_RUNS else "the"
    text = f"With {counted(least, 'run')} of {some} rows the noise is hardly known"
    return [f"{text}: small differences may be luck."]


def _crossings(sweep: Sweep, ours: Measurement) -> list[str]:
    """Say from which size on the fastest of ours is faster than each of the others."""
    found: list[Crossover] = []
    for item in crossovers(sweep.series):
        if item.implementation == ours.implementation:
            found.append(item)
    least = min((size for size, _ in sweep.series if size > 0), default=0)
    always = [i for i in found if i.size is not None and i.size <= least and not i.level]
    later = [i for i in found if i.size is not None and i not in always]
    level = [i for i in found if i.size is None and i.level]
    ahead = [i for i in found if i.size is None and not i.level and i.ahead]
    slower = [i for i in found if i.size is None and not i.level and not i.ahead]
    parts = []
    if later:
        starts = (f"{item.reference} from {_size(item)} on{_as_far(item)}" for item in later)
        parts.append(f"is faster than {_listed(list(starts))}")
    if always:
        at = "at every size" if all(i.up_to is None for i in always) else "wherever both ran"
        parts.append(f"is faster than {_names(always)} {at}")
    if level:
        parts.append(f"is within noise of {_names(level)} at the largest")
    if ahead:
        parts.append(f"is faster than {_names(ahead)}, but not at the largest")
    if slower:
        parts.append(f"stays slower than {_names(slower)}")
    if not parts:
        return []
    return [f"With growing {sweep.axis}, {ours.implementation} {'; it '.join(parts)}."]


def _size(item: Crossover) -> str:
    """Return a measured size, or about which one it is."""
    if item.size is not None and item.size.is_integer():
        return f"{item.size:,.0f}"
    text = item.size_text
    return (
        f"about {round(float(text)):,}"
        if item.size is not None and item.size > 9
        else f"about {text}"
    )


def _names(items: Sequence[Crossover]) -> str:
    return _listed([f"{item.reference}{_as_far(item)}" for item in items])


def _as_far(item: Crossover) -> str:
    """Say up to which size both were measured, where that is not the largest."""
    return "" if item.up_to is None else f" (measured up to {item.up_to:,})"


def _listed(items: Sequence[str]) -> str:
    """Return items as a sentence names them: a, b and c."""
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


@dataclass(frozen=True)
class Trouble:
    """What failed, or was not there to be measured; `failed` says which."""

    text: str
    failed: bool

    def __str__(self) -> str:
        return self.text


def troubles_of(sweep: Sweep) -> list[Trouble]:
    """Return what failed or was not there, each reason once with the sizes where it was so."""
    found: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for size, rows in sweep.series:
        for row in rows:
            if not row.ok:
                key = row.implementation, row.status, NUMBER.sub("#", row.reason)
                found.setdefault(key, []).append((size, row.reason))
    every = len(sweep.series)
    troubles = []
    for (name, status, _), items in found.items():
        sizes, reason = [size for size, _ in items], _one_reason([text for _, text in items])
        where = f" at {sweep.axis} = {size_range(sizes)}" if len(set(sizes)) < every else ""
        what = "was not measured" if status == "unavailable" else f"failed ({status})"
        text = f"{name} {what}{where}" + (f": {reason}" if reason else "")
        troubles.append(Trouble(text, status != "unavailable"))
    more = len(troubles) - MOST_TROUBLES
    if more <= 0:
        return troubles
    rest = any(item.failed for item in troubles[MOST_TROUBLES:])
    return [*troubles[:MOST_TROUBLES], Trouble(f"and {more} more, as the table says", rest)]


def _one_reason(reasons: Sequence[str]) -> str:
    """Return reasons that differ in numbers only as one, each number from the first to the last."""
    first, last = (NUMBER.findall(reasons[index]) for index in (0, -1))
    spans = (a if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True))
    return NUMBER.sub(lambda _: next(spans), reasons[0])


def size_range(sizes: Sequence[int]) -> str:
    """Return sizes in words, many as a range."""
    ordered = sorted(set(sizes))
    if len(ordered) > SHOWN_SIZES:
        return f"{ordered[0]:,} to {ordered[-1]:,}"
    return _listed([f"{size:,}" for size in ordered])
