"""Sentences drawn from measured rows: who is fastest where, crossovers, what failed and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from opencl_lab.comparison.measure import Measurement, Side
from opencl_lab.comparison.sweep import Crossover, crossovers
from opencl_lab.comparison.table import number
from opencl_lab.report.sweeps import Sweep
from opencl_lab.wording import counted

__all__ = ["Trouble", "are_level", "size_range", "summary_of", "troubles_of"]

SHOWN_SIZES = 4  # that are named one by one
SHOWN_NAMES = 3
MOST_RANGES = 6  # of sizes with a winner each, before only their numbers are said
FEWEST_RUNS = 4  # of each: those of equal speed lie apart by luck in less than one of twenty cases
MOST_TROUBLES = 20


def summary_of(sweep: Sweep) -> list[str]:
    """Return what the rows say of speed."""
    sentences = []
    for side in ("host", "device"):
        sentences += _of_side(sweep, side)
    return sentences or ["Nothing was measured with a right result."]


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
    low, high = sorted((one.total_ms.interval, two.total_ms.interval))
    return low[1] >= high[0]


def _leaders(ranked: Sequence[Measurement]) -> list[str]:
    """Return the fastest and all whose times overlap with its, the fastest first."""
    return [row.implementation for row in ranked if are_level(row, ranked[0])]


def _winners(sweep: Sweep, series: Sequence[tuple[int, list[Measurement]]]) -> str:
    """Name the fastest by ranges of sizes, within which the same ones lead or are level."""
    leaders = [(size, _leaders(ranked)) for size, ranked in series]
    if not sweep.varied:
        return _lead_text(leaders[0][1])
    ranges: list[tuple[list[str], list[int]]] = []
    for size, names in leaders:
        common = [name for name in ranges[-1][0] if name in names] if ranges else []
        if common:
            ranges[-1] = (common, [*ranges[-1][1], size])
        else:
            ranges.append((names, [size]))
    if len(ranges) == 1:
        return f"{_lead_text(ranges[0][0])} at every size"
    if len(ranges) > MOST_RANGES:
        counts = Counter(names[0] for _, names in leaders)
        parts = [f"{name} at {count} of {len(leaders)} sizes" for name, count in counts.items()]
        return _listed(parts)
    parts = []
    for index, (names, sizes) in enumerate(ranges):
        last = index == len(ranges) - 1
        parts.append(f"{_lead_text(names)} {_where(sizes, not index, last)}")
    return f"{', '.join(parts)} ({sweep.axis})"


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
    return f"{number(ratio, 3)} times"


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
        starts = (f"{item.reference} from {_size(item)} on" for item in later)
        parts.append(f"is faster than {_listed(list(starts))}")
    if always:
        parts.append(f"is faster than {_names(always)} at every size")
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
    return f"about {int(text):,}" if text.isdecimal() else f"about {text}"


def _names(items: Sequence[Crossover]) -> str:
    return _listed([item.reference for item in items])


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
    found: dict[tuple[str, str, str], list[int]] = {}
    for size, rows in sweep.series:
        for row in rows:
            if not row.ok:
                key = row.implementation, row.status, row.reason
                found.setdefault(key, []).append(size)
    every = len(sweep.series)
    troubles = []
    for (name, status, reason), sizes in found.items():
        where = f" at {sweep.axis} = {size_range(sizes)}" if len(set(sizes)) < every else ""
        what = "was not measured" if status == "unavailable" else f"failed ({status})"
        text = f"{name} {what}{where}" + (f": {reason}" if reason else "")
        troubles.append(Trouble(text, status != "unavailable"))
    more = len(troubles) - MOST_TROUBLES
    if more <= 0:
        return troubles
    rest = any(item.failed for item in troubles[MOST_TROUBLES:])
    return [*troubles[:MOST_TROUBLES], Trouble(f"and {more} more, as the table says", rest)]


def size_range(sizes: Sequence[int]) -> str:
    """Return sizes in words, many as a range."""
    ordered = sorted(set(sizes))
    if len(ordered) > SHOWN_SIZES:
        return f"{ordered[0]:,} to {ordered[-1]:,}"
    return _listed([f"{size:,}" for size in ordered])
