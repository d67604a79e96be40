"""Answers to the questions of studies: sentences made from measured rows.

Times whose intervals overlap are level, and then no implementation is called faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from opencl_lab.core.wording import counted, plain
from opencl_lab.lab.engine.crossings import crossovers, verdict
from opencl_lab.lab.engine.implementations import TOO_SLOW
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.speedups import over_ranks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.descriptor import PartResult

DEVICE = "the device"
"""Stands for our fastest algorithm at each size."""
MOST_SINGLE = 20
"""Most points of a part that are told one by one."""
NOTHING = ["Nothing was measured."]
WHY_LOCAL = (
    "GPUs have local memory beside their caches, so tiles there save reads of memory. On CPUs it "
    "is ordinary memory in the same caches: tiles save none, but their values lie side by side, "
    "where plain reads stride over rows."
)


def each_point(
    results: Sequence[PartResult], named: bool = False
) -> Iterator[tuple[str, Sequence[Measurement]]]:
    """Yield the points of all parts, with their rows; several parts may be `named`."""
    for result in results:
        prefix = f"{result.part.name}, " if named and len(results) > 1 else ""
        yield from ((f"{prefix}{point}", rows) for point, rows in result.rows)


def times_of(rows: Sequence[Measurement]) -> dict[str, Times]:
    """Return the total times of the correct rows."""
    return {row.implementation: row.total_ms for row in rows if row.ok and row.total_ms}


def kernels_of(rows: Sequence[Measurement]) -> dict[str, Times]:
    """Return the kernel times of the correct rows."""
    return {row.implementation: row.kernel_times for row in rows if row.ok and row.kernel_times}


def best_of(rows: Sequence[Measurement]) -> list[tuple[str, Times]]:
    """Return the fastest of ours and the fastest other, if both were measured."""
    ours = times_of([row for row in rows if row.kind == "opencl"])
    others = {name: times for name, times in times_of(rows).items() if name not in ours}
    sides = [side.items() for side in (ours, others) if side]
    return [min(side, key=lambda item: item[1].median) for side in sides] if sides[1:] else []


def _longer(slow: Times, fast: Times) -> str:
    """Say how many times as long one takes as the other, which may be within noise."""
    if slow.is_level_with(fast):
        return "level within noise"
    return f"{plain(slow.median / fast.median)} times as long"


def crossing(results: Sequence[PartResult], *, ours: str, others: Sequence[str]) -> list[str]:
    """Return from which size on one of ours, or `DEVICE`, is faster than each of the others."""
    sentences = []
    for result in results:
        prefix = f"{result.part.name}: " if len(results) > 1 else ""
        found = crossovers([(size, _with_device(rows)) for size, rows in result.series])
        said = {one.reference: one.said(result.part.axis) for one in found
                if one.implementation == ours}  # fmt: skip
        for other in others:
            text = said.get(other, f"{ours} and {other} were not both measured")
            sentences.append(f"{prefix}{text}.")
    return sentences


def _with_device(rows: Sequence[Measurement]) -> list[Measurement]:
    """Add our fastest row under the name of `DEVICE`."""
    timed = [(row.total_ms.median, row) for row in rows
             if row.kind == "opencl" and row.ok and row.total_ms]  # fmt: skip
    first = [row for _, row in sorted(timed, key=lambda item: item[0])[:1]]
    return [*rows, *(replace(row, implementation=DEVICE, algorithm=DEVICE) for row in first)]


def fastest(results: Sequence[PartResult]) -> list[str]:
    """Name the fastest at the largest size of each part, of the device and of the others."""
    last = [replace(result, rows=result.rows[-1:]) for result in results]
    return [
        f"{point}: {_fastest_of(rows)}." for point, rows in each_point(last, named=True)
    ] or NOTHING


def _fastest_of(rows: Sequence[Measurement]) -> str:
    pair = sorted(best_of(rows), key=lambda item: item[1].median)
    if not pair:
        return "only one side was measured"
    (ahead, least), (behind, more) = pair
    text = f"{ahead} takes {_taking(least)}, {behind} {_taking(more)}, {_longer(more, least)}"
    sequential = times_of(rows).get("c:seq")
    if sequential is not None and "c:seq" not in (ahead, behind):
        text += f"; sequential C takes {_taking(sequential)}, {_longer(sequential, least)}"
    return text


def _taking(times: Times) -> str:
    """Return a time in milliseconds, with a remark if it is of one run."""
    return f"{plain(times.median)} ms" + (" (one run)" if times.runs == 1 else "")


def beside_best(results: Sequence[PartResult], *, least: float) -> list[str]:
    """Compare the best other library with our fastest algorithm, at each point of each part.

    Of parts of many points the mean, the extremes and what is below `least` are told.
    """
    sentences = []
    for result in results:
        compared = []
        for point, rows in result.rows:
            if best := best_of(rows):
                (_, ours), (name, theirs) = best
                ratio, level = theirs.median / ours.median, theirs.is_level_with(ours)
                compared.append((ratio, f"{point}, {name}{', level' * level}"))
        said = [f"{plain(ratio)} ({where})" for ratio, where in compared]
        takes = f"{result.part.name}: the fastest other takes"
        if len(compared) > MOST_SINGLE:
            ordered, mean = sorted(compared), math.fsum(math.log(ratio) for ratio, _ in compared)
            (low, worst), (high, best_at) = ordered[0], ordered[-1]
            below = [f"{plain(ratio)} ({where})" for ratio, where in ordered if ratio < least]
            sentences.append(
                f"{takes} {plain(math.exp(mean / len(compared)))} times as long as the device, by "
                f"the geometric mean of {len(compared)} points, from {plain(low)} ({worst}) to "
                f"{plain(high)} ({best_at}); less than {plain(least)} times as long at "
                f"{len(below)}{': ' * bool(below)}{', '.join(below)}."
            )
        elif said:
            sentences.append(f"{takes} this many times as long as the device: {'; '.join(said)}.")
        else:
            sentences.append(f"{result.part.name}: nothing to compare with was measured.")
    return sentences or NOTHING


def ratios(results: Sequence[PartResult], *, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return how many times as long the second of each pair takes, at each point.

    For algorithms on the device, kernel times are compared, too, since calls include copies.
    """
    sentences: list[str] = []
    for fast, slow in pairs:
        sentences += _pair(results, fast, slow, times_of)
        sentences += (f"In kernels: {said}" for said in _pair(results, fast, slow, kernels_of))
    return sentences or NOTHING


def _pair(
    results: Sequence[PartResult],
    fast: str,
    slow: str,
    times_in: Callable[[Sequence[Measurement]], Mapping[str, Times]],
) -> Iterator[str]:
    """Compare two implementations at each point where both have times."""
    found = []
    for point, rows in each_point(results):
        times = times_in(rows)
        if fast in times and slow in times:
            level = ", level" * times[fast].is_level_with(times[slow])
            found.append(f"{plain(times[slow].median / times[fast].median)} ({point}{level})")
    if found:
        yield f"{slow} takes this many times as long as {fast}: {'; '.join(found)}."


def local_memory(results: Sequence[PartResult], *, reads: str, tiles: str) -> list[str]:
    """Return whether the best tiles in local memory beat plain reads, by kernel times."""
    sentences = []
    verdicts = set()
    for point, rows in each_point(results):
        times = kernels_of(rows) or times_of(rows)
        staged = {name: x for name, x in times.items() if name.partition("[")[0] == tiles}
        if reads in times and staged:
            name, best = min(staged.items(), key=lambda item: item[1].median)
            verdicts.add(verdict(best, times[reads]))
            ratio = plain(times[reads].median / best.median)
            level = ", level within noise" * best.is_level_with(times[reads])
            sentences.append(
                f"{point}: {reads} takes {_taking(times[reads])} in kernels, {name} "
                f"{_taking(best)}, which is {ratio} times as fast{level}."
            )
    if not sentences:
        return NOTHING
    said = {"faster": "Local memory wins", "slower": "Local memory loses", "level": "It is level"}
    first = said[verdicts.pop()] if len(verdicts) == 1 else "It depends on the size"
    return [f"{first}. {WHY_LOCAL}", *sentences]


def all_right(results: Sequence[PartResult]) -> list[str]:
    """Return the number of correct rows, and for each reason which others there are."""
    measured = [(point, row) for point, rows in each_point(results, named=True) for row in rows]
    failed: dict[tuple[str, str], dict[str, list[str]]] = {}
    for point, row in measured:
        if not row.ok:
            where, reason = point, row.reason
            if reason.startswith(TOO_SLOW):
                seconds = reason.removeprefix(TOO_SLOW).partition(";")[0].strip()
                where, reason = f"{point} ({seconds})", "as a run would take long"
            names = failed.setdefault((row.status, reason), {})
            names.setdefault(row.implementation, []).append(where)
    run = [row for _, row in measured if row.status != "unavailable"]
    sentences = [f"{sum(r.ok for r in run)} of {counted(len(run), 'measured row')} passed."]
    for (status, reason), names in failed.items():
        rows = "; ".join(f"{name} at {'; '.join(points)}" for name, points in names.items())
        sentences.append(f"{'Not run' if status == 'unavailable' else status}: {rows}, {reason}.")
    return sentences


def within(results: Sequence[PartResult], *, largest: float, relative: bool) -> list[str]:
    """Return whether the differences from the expected result are below a limit."""
    worst = (-1.0, "")
    for point, rows in each_point(results):
        for row in rows:
            of = row.difference
            if of is None or (of.ok and math.isnan(of.max_abs)):
                continue  # correct, but without errors of single values
            value = of.max_rel if relative else of.max_abs
            value = math.inf if math.isnan(value) else value
            if value > worst[0]:
                worst = value, f"{row.implementation} at {point}"
    if worst[0] < 0:
        return NOTHING
    kind = "relative" if relative else "absolute"
    text = f"{'Yes' if worst[0] < largest else 'No'}: the largest {kind} difference of a value is "
    text += f"{worst[0]:.2g}, of {worst[1]}; the limit is {largest:g}."
    return [text + " Values near 0, where sums cancel, have the largest ones." * relative]


def orders(results: Sequence[PartResult]) -> list[str]:
    """Compare the times of all orders of keys at the largest size, of each implementation."""
    common = [{str(point): times_of(rows) for point, rows in result.rows} for result in results]
    points = [p for p in (common[0] if common else ()) if all(p in found for found in common)]
    if len(results) < 2 or not points:
        return ["Only one order was measured."]
    at, names = points[-1], [result.part.name for result in results]
    sentences = []
    for implementation in common[0][at]:
        times = [found[at][implementation] for found in common if implementation in found[at]]
        if len(times) == len(results):
            said = ", ".join(f"{_taking(x)} {name}" for x, name in zip(times, names, strict=True))
            ordered = sorted(times, key=lambda x: x.median)
            longer = _longer(ordered[-1], ordered[0])
            sentences.append(f"{at}: {implementation} takes {said}: {longer}.")
    return sentences


def by_workers(results: Sequence[PartResult], *, references: Sequence[str]) -> list[str]:
    """Return times by workers, at the largest size that ran with one worker, relative to that."""
    sentences = []
    for reference in references:
        found = []
        for point, rows in each_point(results):
            right = [row for row in rows if row.algorithm == reference and row.ok and row.total_ms]
            base = next((row for row in right if row.workers == 1), None)
            if base is not None:  # at the largest sizes a single worker may be too slow to be run
                gains = [row.against(base) for row in sorted(right, key=lambda row: row.workers)]
                found = [f"{reference} at {point}: {_gains(gains, 'worker')}."]
        sentences += found or [f"{reference} did not run, so there is no answer."]
    return sentences


def by_ranks(results: Sequence[PartResult]) -> list[str]:
    """Return how time, speed-up and efficiency change with ranks."""
    return _of_ranks(results, lambda rows: _gains(rows, "rank"))


def shares(results: Sequence[PartResult]) -> list[str]:
    """Return where the time of the most ranks goes."""
    return _of_ranks(results, lambda rows: _shares(rows[-1]))


def _of_ranks(
    results: Sequence[PartResult], said: Callable[[Sequence[Measurement]], str]
) -> list[str]:
    sentences = []
    for result in results:
        more = " with one rank" * (result.part.grows is not None)
        for point, rows in result.rows:
            if len(found := over_ranks(rows)) > 1:
                sentences.append(f"{result.part.name}, {point}{more}: {said(found)}.")
    return sentences or NOTHING


def _gains(rows: Sequence[Measurement], worker: str) -> str:
    """Return the times of rows, with speed-up and efficiency of all but the first."""
    parts = [
        f"{plain(row.total_ms.median)} ms with {row.workers}"
        + f" ({plain(row.speedup)} times the speed, efficiency {row.efficiency:.0%})"
        * (row is not rows[0])
        for row in rows
        if row.total_ms and row.speedup and row.efficiency
    ]
    return ", ".join(parts).replace(" with 1", f" with 1 {worker}", 1)


def _shares(row: Measurement) -> str:
    found = row.over_ranks
    assert found is not None
    return (
        f"with {row.workers} ranks compute {found.compute:.0%}, communication "
        f"{found.communication:.0%}, waiting {found.waiting:.0%}; the longest compute is "
        f"{found.imbalance:.0%} above the mean"
    )
