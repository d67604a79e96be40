"""Answers to the questions of studies, as sentences made from measured rows.

Times whose intervals overlap are level, and then no implementation is called faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from opencl_lab.core.wording import counted, plain
from opencl_lab.lab.engine.crossings import Crossover, crossovers, sizes_text
from opencl_lab.lab.engine.implementations import TOO_SLOW
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.descriptor import Machine, PartResult, Point

DEVICE = "the device"
"""Stands for our fastest algorithm at each size."""
LEVEL = 1.1
"""Ratios closer to 1 are called level, if times were not taken in the same turns."""
LEAST_RANGE = 3
"""Least points of a part whose range is told."""
MOST_SINGLE = 20
"""Most points of a part that are told one by one."""
NOTHING = "Nothing was measured."


def each_point(results: Sequence[PartResult]) -> Iterator[tuple[Point, Sequence[Measurement]]]:
    """Yield the points of all parts with their rows."""
    for result in results:
        yield from result.rows


def times_of(rows: Sequence[Measurement]) -> dict[str, Times]:
    """Return the total times of the correct rows."""
    return {row.implementation: row.total_ms for row in rows if row.ok and row.total_ms}


def _sides(rows: Sequence[Measurement]) -> tuple[dict[str, Times], dict[str, Times]]:
    """Return our times, and those of others."""
    ours = times_of([row for row in rows if row.kind == "opencl"])
    return ours, {name: times for name, times in times_of(rows).items() if name not in ours}


def _first(times: Mapping[str, Times]) -> tuple[str, Times]:
    return min(times.items(), key=lambda item: item[1].median)


def _longer(slow: Times, fast: Times, name: str = "") -> str:
    """Say how much longer one takes than the other, which may be named."""
    ratio = slow.median / fast.median
    if ratio < LEVEL:
        return f"{plain(100 * (ratio - 1), 2)} % longer{name and f' than {name}'}"
    return f"{plain(ratio)} times as long{name and f' as {name}'}"


def _taking(times: Times) -> str:
    """Return a time in milliseconds, with a remark if it is of one run."""
    return f"{plain(times.median)} ms" + (" (one run)" if times.runs == 1 else "")


def crossing(
    results: Sequence[PartResult], machine: Machine, *, ours: str, others: Sequence[str]
) -> list[str]:
    """Return from which size on one of ours, or `DEVICE`, is faster than each of the others."""
    sentences = []
    for result in results:
        prefix = f"{result.part.name}: " if len(results) > 1 else ""
        series = [(size, _with_device(rows)) for size, rows in result.series]
        found = {item.reference: item for item in crossovers(series) if item.implementation == ours}
        for other in others:
            if other in found:
                text = _crossing_text(found[other], result)
            else:
                text = f"{ours} and {other} were not both measured, so there is no answer"
            sentences.append(f"{prefix}{text}.")
    return sentences


def _with_device(rows: Sequence[Measurement]) -> list[Measurement]:
    """Add our fastest row under the name of `DEVICE`."""
    ours, _ = _sides(rows)
    if not ours:
        return list(rows)
    _, times = _first(ours)
    first = next(row for row in rows if row.total_ms is times)
    return [*rows, replace(first, implementation=DEVICE, algorithm=DEVICE)]


def _crossing_text(found: Crossover, result: PartResult) -> str:
    ours, other, axis = found.implementation, found.reference, result.part.axis
    where = f"{axis}="
    even = f"level within noise at {sizes_text(found.level, where)}" * bool(found.level)
    slower = f"slower at {sizes_text(found.behind, where)}" * bool(found.behind)
    more = "".join(f", {text}" for text in (even, slower) if text)
    if found.ahead:
        return f"{ours} is faster than {other} only at {sizes_text(found.ahead, where)}{more}"
    if found.size is None and even and not slower:
        return f"{ours} and {other} are {even}"
    if found.size is None:
        return (
            f"{ours} is never faster than {other} beyond noise, up to {axis}={result.series[-1][0]}"
            + f", {even}" * bool(even)
        )
    if found.size == result.series[0][0]:
        return f"{ours} is faster than {other} at every {axis} measured"
    return f"{ours} is faster than {other} from {found.about}{axis}={found.size_text} on{more}"


def fastest(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Name the fastest at the largest size of each part, of the device and of the others."""
    sentences = []
    for result in results:
        if not result.rows:
            continue
        point, rows = result.rows[-1]
        prefix = f"{result.part.name}, {point}" if len(results) > 1 else str(point)
        sentences.append(f"{prefix}: {_fastest_of(rows)}.")
    return sentences or [NOTHING]


def _fastest_of(rows: Sequence[Measurement]) -> str:
    ours, others = _sides(rows)
    if not ours or not others:
        return "only one side was measured"
    pair = sorted((_first(ours), _first(others)), key=lambda item: item[1].median)
    (ahead, least), (behind, more) = pair
    if least.is_level_with(more):
        text = f"{ahead} and {behind} are level within noise, {_taking(least)} and {_taking(more)}"
    else:
        text = f"{ahead} takes {_taking(least)}, {behind} {_taking(more)}, "
        text += f"which is {_longer(more, least)}"
    if "c:seq" in others and behind != "c:seq" and not least.is_level_with(others["c:seq"]):
        text += f"; sequential C takes {_longer(others['c:seq'], least, ahead)}"
    return text


def _beside_best(result: PartResult) -> Iterator[tuple[Point, str, float, bool]]:
    """Yield a point, the best other there, its time over ours, and whether they are level."""
    for point, rows in result.rows:
        ours, others = _sides(rows)
        if ours and others:
            (_, mine), (name, theirs) = _first(ours), _first(others)
            yield point, name, theirs.median / mine.median, mine.is_level_with(theirs)


def beside_best(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Compare the best other library with our fastest algorithm, at each point of each part.

    Parts of many points are left to `range_beside_best`.
    """
    sentences = []
    for result in results:
        compared = list(_beside_best(result))
        if len(compared) > MOST_SINGLE:
            sentences.append(f"{result.part.name}: see the range of its {len(compared)} points.")
            continue
        found, even = [], []
        for point, name, ratio, level in compared:
            if level:
                even.append(f"{point} ({name})")
            else:
                found.append(f"{plain(ratio)} ({point}, {name})")
        if found:
            text = "the fastest other takes this many times as long as the device"
            sentences.append(f"{result.part.name}: {text}: {'; '.join(found)}.")
        if even:
            sentences.append(f"{result.part.name}: level within noise at {'; '.join(even)}.")
        if not (found or even):
            sentences.append(f"{result.part.name}: nothing to compare with was measured.")
    return sentences or [NOTHING]


def range_beside_best(
    results: Sequence[PartResult], machine: Machine, *, least: float
) -> list[str]:
    """Return mean and extremes of the best other's time over ours, and what is below `least`."""
    sentences = []
    for result in results:
        found = sorted((ratio, str(point), name) for point, name, ratio, _ in _beside_best(result))
        if len(found) < LEAST_RANGE:
            continue
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in found) / len(found))
        worst, best = (
            f"{plain(ratio)} ({point}, {name})" for ratio, point, name in (found[0], found[-1])
        )
        below = [f"{point} ({plain(ratio)})" for ratio, point, _ in found if ratio < least]
        sentences.append(
            f"{result.part.name}: at {len(found)} points the fastest other takes {plain(mean)} "
            f"times as long as the device (geometric mean), from {worst} to {best}; less than "
            f"{plain(least)} times as long at {len(below)}{': ' * bool(below)}{', '.join(below)}."
        )
    return sentences or [f"Fewer than {LEAST_RANGE} points were compared."]


def all_right(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Return the number of correct rows, and the others by name."""
    run = [(point, row) for point, rows in each_point(results) for row in rows]
    wrong = [(p, row) for p, row in run if not row.ok and row.status != "unavailable"]
    right = sum(row.ok for _, row in run)
    sentences = [f"{right} of {counted(right + len(wrong), 'measured row')} passed."]
    same: dict[str, list[str]] = {}
    for point, row in wrong:
        said = f"{row.status}, {row.reason}"
        same.setdefault(said, []).append(f"{row.implementation} at {point}")
    sentences += [f"{'; '.join(rows)}: {said}." for said, rows in same.items()]
    return sentences + _absent(run)


def _absent(run: Sequence[tuple[Point, Measurement]]) -> list[str]:
    """Return what was not run and why, with the points if it ran at others.

    Implementations that would take too long share a sentence for each point.
    """
    points: dict[tuple[str, str], list[str]] = {}
    slow: dict[str, list[str]] = {}
    ran = {row.implementation for _, row in run if row.status != "unavailable"}
    for point, row in run:
        if row.status == "unavailable" and row.reason.startswith(TOO_SLOW):
            seconds = row.reason.removeprefix(TOO_SLOW).partition(";")[0].strip()
            slow.setdefault(str(point), []).append(f"{row.implementation} about {seconds}")
        elif row.status == "unavailable":
            points.setdefault((row.implementation, row.reason), []).append(str(point))
    several = {name for name, _ in points if sum(name == other for other, _ in points) > 1}
    same: dict[tuple[str, str], list[str]] = {}
    for (name, reason), where in sorted(points.items()):
        at = f" at {'; '.join(dict.fromkeys(where))}" if name in ran | several else ""
        same.setdefault((at, reason), []).append(name)
    said = [f"Not run: {', '.join(names)}{at}, {reason}." for (at, reason), names in same.items()]
    return said + [
        f"Not run at {point}, as one run would take long: {', '.join(names)}."
        for point, names in slow.items()
    ]


def within(
    results: Sequence[PartResult], machine: Machine, *, largest: float, relative: bool
) -> list[str]:
    """Return whether the differences from the expected result are below a limit."""
    kind = "relative" if relative else "absolute"
    worst: tuple[float, str, Point] | None = None
    for point, rows in each_point(results):
        for row in rows:
            if row.difference is None or (row.difference.ok and math.isnan(row.difference.max_abs)):
                continue  # correct, but without errors of single values
            value = row.difference.max_rel if relative else row.difference.max_abs
            if worst is None or not value <= worst[0]:
                worst = (math.inf if math.isnan(value) else value, row.implementation, point)
    if worst is None:
        return [NOTHING]
    verdict = "Yes" if worst[0] < largest else "No"
    text = f"{verdict}: the largest {kind} difference of a value is {worst[0]:.2g}, of {worst[1]} "
    text += f"at {worst[2]}; the limit is {largest:g}."
    if relative:
        text += " Values near 0, where sums cancel, have the largest ones."
    return [text]


def ratios(
    results: Sequence[PartResult], machine: Machine, *, pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """Return how many times as long the second of each pair takes, at each point.

    For algorithms on the device, kernel times are compared, too, since calls include copies.
    """
    sentences: list[str] = []
    for fast, slow in pairs:
        sentences += _pair(results, fast, slow, times_of)
        sentences += (f"In kernels: {said}" for said in _pair(results, fast, slow, _kernels_of))
    return sentences or [NOTHING]


def _kernels_of(rows: Sequence[Measurement]) -> dict[str, Times]:
    return {row.implementation: row.kernel_times for row in rows if row.ok and row.kernel_times}


def _pair(
    results: Sequence[PartResult],
    fast: str,
    slow: str,
    times_in: Callable[[Sequence[Measurement]], dict[str, Times]],
) -> Iterator[str]:
    """Compare two implementations at each point where both have times."""
    found, even = [], []
    for point, rows in each_point(results):
        times = times_in(rows)
        if fast not in times or slow not in times:
            continue
        if times[fast].is_level_with(times[slow]):
            even.append(str(point))
        else:
            found.append(f"{plain(times[slow].median / times[fast].median)} ({point})")
    if found:
        yield f"{slow} takes this many times as long as {fast}: {'; '.join(found)}."
    if even:
        yield f"{slow} and {fast} are level within noise at {'; '.join(even)}."


def orders(results: Sequence[PartResult], machine: Machine) -> list[str]:
    """Compare the times of all orders of keys at the largest size, of each implementation."""
    common = [{str(point): times_of(rows) for point, rows in result.rows} for result in results]
    points = [p for p in (common[0] if common else ()) if all(p in found for found in common)]
    if len(results) < 2 or not points:
        return ["Only one order was measured."]
    at = points[-1]
    sentences = []
    for name in common[0][at]:
        times = [
            (found[at][name], result.part.name)
            for found, result in zip(common, results, strict=True)
            if name in found[at]
        ]
        if len(times) == len(results):
            sentences.append(f"{at}: {name} {_of_orders(times)}.")
    return sentences


def _of_orders(times: Sequence[tuple[Times, str]]) -> str:
    """Return which order takes longer. Orders were measured in sequence, not in turns."""
    ordered = sorted(times, key=lambda item: item[0].median)
    (low, first), (high, last) = ordered[0], ordered[-1]
    if low.is_level_with(high) or high.median < LEVEL * low.median:
        shown = dict.fromkeys(plain(value.median) for value in (low, high))
        return f"takes about the same time for all orders, {' to '.join(shown)} ms"
    return (
        f"takes {plain(low.median)} ms for {first} keys and {plain(high.median)} ms for {last} "
        f"ones, which is {_longer(high, low)}"
    )
