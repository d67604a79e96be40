"""Answers to the questions of studies, from measured rows, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.sweep import crossovers
from opencl_lab.device import Device
from opencl_lab.processes import default_threads
from opencl_lab.studies.descriptor import PartResult, Point
from opencl_lab.wording import counted, size_text

__all__ = [
    "all_right",
    "by_workers",
    "crossing",
    "fastest",
    "local_memory",
    "orders",
    "ratios",
    "within",
]

OWN_LOCAL_MEMORY = 1  # CL_LOCAL; 2 is a part of global memory
LEVEL = 1.1
"""Ratios of times nearer to 1 than this are called level."""


def _each(results: Sequence[PartResult]) -> Iterator[tuple[Point, Sequence[Measurement]]]:
    for result in results:
        yield from result.rows


def _time(row: Measurement | None) -> float | None:
    """Return the total time of a row that is right."""
    return row.total_ms.median if row is not None and row.ok and row.total_ms else None


def _times(rows: Sequence[Measurement]) -> dict[str, float]:
    found = ((row.implementation, _time(row)) for row in rows)
    return {name: time for name, time in found if time is not None}


def _ratio(slow: float, fast: float) -> str:
    return f"{slow / fast:.3g} times"


def crossing(
    results: Sequence[PartResult], device: Device, *, ours: str, others: Sequence[str]
) -> list[str]:
    """Say from which size on one of ours is faster than each of the others."""
    sentences = []
    for result in results:
        prefix = f"{result.part.name}: " if len(results) > 1 else ""
        found = {
            other: str(item)
            for item in crossovers(result.series)
            for other in others
            if item.implementation == ours and item.reference == other
        }
        for other in others:
            missing = f"{ours} and {other} were not both measured, so there is no answer"
            sentences.append(f"{prefix}{found.get(other, missing)}.")
    return sentences


def fastest(results: Sequence[PartResult], device: Device) -> list[str]:
    """Name the fastest at the largest size of each part, of the device and of the others."""
    sentences = []
    for result in results:
        if not result.rows:
            continue
        point, rows = result.rows[-1]
        times = _times(rows)
        ours = {name: time for name, time in times.items() if name.startswith("opencl:")}
        others = {name: time for name, time in times.items() if name not in ours}
        prefix = f"{result.part.name}, {point}" if len(results) > 1 else str(point)
        if not ours or not others:
            sentences.append(f"{prefix}: only one side was measured.")
            continue
        first, second = min(ours, key=ours.__getitem__), min(others, key=others.__getitem__)
        ahead, behind = sorted(
            ((first, ours[first]), (second, others[second])), key=lambda item: item[1]
        )
        text = f"{prefix}: {ahead[0]} takes {ahead[1]:.3g} ms, {behind[0]} {behind[1]:.3g} ms"
        text += f", which is {_ratio(behind[1], ahead[1])} as long"
        if "c:seq" in others:
            text += f"; sequential C takes {_ratio(others['c:seq'], ahead[1])} as long"
        sentences.append(text + ".")
    return sentences


def all_right(results: Sequence[PartResult], device: Device) -> list[str]:
    """Count the rows that are right, and name the others."""
    run = [(point, row) for point, rows in _each(results) for row in rows]
    wrong = [(p, row) for p, row in run if not row.ok and row.status != "unavailable"]
    absent = {(row.implementation, row.reason) for _, row in run if row.status == "unavailable"}
    right = sum(row.ok for _, row in run)
    sentences = [f"{right} of {counted(right + len(wrong), 'measured row')} passed."]
    sentences += [f"{row.implementation} at {p}: {row.status}, {row.reason}." for p, row in wrong]
    return sentences + [f"Not run: {name}, {reason}." for name, reason in sorted(absent)]


def within(
    results: Sequence[PartResult], device: Device, *, largest: float, relative: bool
) -> list[str]:
    """Say whether the differences from the expected result stay below a limit."""
    kind = "relative" if relative else "absolute"
    worst: tuple[float, str, Point] | None = None
    for point, rows in _each(results):
        for row in rows:
            if row.difference is None:
                continue
            value = row.difference.max_rel if relative else row.difference.max_abs
            if worst is None or not value <= worst[0]:
                worst = (math.inf if math.isnan(value) else value, row.implementation, point)
    if worst is None:
        return ["Nothing was measured."]
    verdict = "Yes" if worst[0] < largest else "No"
    text = f"{verdict}: the largest {kind} difference of a value is {worst[0]:.2g}, of {worst[1]} "
    text += f"at {worst[2]}; the limit is {largest:g}."
    if relative:
        text += " Values near 0, where sums cancel, have the largest ones."
    return [text]


def ratios(
    results: Sequence[PartResult], device: Device, *, pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """Say how many times as long the second of each pair takes, at each point."""
    sentences = []
    for fast, slow in pairs:
        found = []
        for point, rows in _each(results):
            times = _times(rows)
            if fast in times and slow in times:
                found.append(f"{times[slow] / times[fast]:.3g} ({point})")
        if found:
            sentences.append(f"{slow} takes this many times as long as {fast}: {'; '.join(found)}.")
    return sentences or ["Nothing was measured."]


def orders(results: Sequence[PartResult], device: Device) -> list[str]:
    """Compare the times of all orders of keys at the largest size, of each implementation."""
    common = [{str(point): _times(rows) for point, rows in result.rows} for result in results]
    points = [point for point in common[0] if all(point in found for found in common)]
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
            (low, first), (high, last) = min(times), max(times)
            if high < LEVEL * low:
                sentences.append(f"{at}: {name} takes the same time for all orders, {low:.3g} ms.")
            else:
                sentences.append(
                    f"{at}: {name} takes {low:.3g} ms for {first} keys and {high:.3g} ms for "
                    f"{last} ones, {_ratio(high, low)} as long."
                )
    return sentences


def by_workers(
    results: Sequence[PartResult], device: Device, *, references: Sequence[str]
) -> list[str]:
    """Give times by workers at the largest size that one worker did, against that one."""
    sentences = []
    for reference in references:
        measured = [
            (
                point,
                {
                    row.workers: time
                    for row in rows
                    if row.algorithm == reference and (time := _time(row)) is not None
                },
            )
            for point, rows in _each(results)
        ]
        # At the largest sizes one worker may take too long to be run.
        point, found = next((item for item in reversed(measured) if 1 in item[1]), (None, {}))
        if point is None:
            sentences.append(f"{reference} did not run, so there is no answer.")
            continue
        one = found[1]
        for workers, time in sorted(found.items()):
            speedup = one / time
            sentences.append(
                f"{point}: {reference} x{workers} takes {time:.3g} ms, speed-up {speedup:.2f}, "
                f"efficiency {100 * speedup / workers:.0f} %."
            )
        most = max(found)
        best = min(found, key=found.__getitem__)
        if most == 1:
            continue
        efficiency = one / found[most] / most
        text = f"{reference} is fastest with {counted(best, 'worker')}; efficiency "
        text += f"{'falls to' if efficiency < 1 else 'is'} {100 * efficiency:.0f} % with {most}"
        if efficiency < 1 and most > default_threads():
            text += f", as {most} share {counted(default_threads(), 'processor')}"
        sentences.append(text + ".")
    return sentences


def local_memory(
    results: Sequence[PartResult], device: Device, *, basic: str, local: str
) -> list[str]:
    """Say which is faster by kernel time, and what memory and caches have to do with it."""
    sentences = []
    wins = losses = 0
    largest = 0.0
    for point, rows in _each(results):
        plain = next((row for row in rows if row.implementation == basic and row.ok), None)
        staged = [
            row
            for row in rows
            if row.implementation.partition("[")[0] == local and row.ok and _doing(row)
        ]
        if plain is None or not _doing(plain) or not staged:
            continue
        best = min(staged, key=_doing)
        ratio = _doing(plain) / _doing(best)
        wins, losses = wins + (ratio > LEVEL), losses + (ratio < 1 / LEVEL)
        largest = plain.work.bytes if plain.work else 0.0
        others = ", ".join(f"{row.implementation} {_doing(row):.3g} ms" for row in staged)
        sentences.append(
            f"{point}: {basic} {_doing(plain):.3g} ms in kernels, {others}; the best one is "
            f"{ratio:.2f} times as fast as plain reads."
        )
    if not sentences:
        return ["Nothing was measured."]
    verdict = "It depends on the size"
    if wins and not losses:
        verdict = "Local memory wins"
    elif losses and not wins:
        verdict = "Local memory loses"
    elif not wins and not losses:
        verdict = "They are level"
    return [f"{verdict}. {_memory(device, largest)}", *sentences]


def _doing(row: Measurement) -> float:
    """Return the kernel time, or the total where the device reports none."""
    return row.kernel_ms or _time(row) or 0.0


def _memory(device: Device, working_set: float) -> str:
    """Say what local memory is on this device, and whether the matrices stay in the cache."""
    own = getattr(device.handle, "local_mem_type", None) == OWN_LOCAL_MEMORY
    cache = int(getattr(device.handle, "global_mem_cache_size", 0) or 0)
    if own and device.kind != "cpu":
        text = f"Local memory is memory of its own here, {size_text(device.local_memory)} per group"
    else:
        text = "Local memory is ordinary memory here, in the same caches: tiles save no reads of "
        text += "memory by themselves, but their values lie side by side, where plain reads stride "
        text += "over rows"
    if cache and working_set:
        fits = "fits into" if working_set <= cache else "exceeds"
        text += f"; the largest working set of {size_text(working_set)} {fits} the cache of "
        text += f"{size_text(cache)} that the driver reports"
    return text + "."
