"""Answers about machines: what more workers bring, and what local memory is good for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opencl_lab.comparison.measure import Measurement
from opencl_lab.device import Device
from opencl_lab.measuring.roofline import stored_peaks
from opencl_lab.measuring.samples import Times
from opencl_lab.processes import default_threads
from opencl_lab.studies.answers import each_point, level
from opencl_lab.studies.descriptor import PartResult
from opencl_lab.wording import counted, size_text

__all__ = ["by_workers", "local_memory"]

OWN_LOCAL_MEMORY = 1  # CL_LOCAL; 2 is a part of global memory


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
                    row.workers: row.total_ms
                    for row in rows
                    if row.algorithm == reference and row.ok and row.total_ms
                },
            )
            for point, rows in each_point(results)
        ]
        # At the largest sizes one worker may take too long to be run.
        point, found = next((item for item in reversed(measured) if 1 in item[1]), (None, {}))
        if point is None:
            sentences.append(f"{reference} did not run, so there is no answer.")
            continue
        for workers, times in sorted(found.items()):
            speedup = found[1].median / times.median
            sentences.append(
                f"{point}: {reference} x{workers} takes {times.median:.3g} ms, speed-up "
                f"{speedup:.2f}, efficiency {100 * speedup / workers:.0f} %."
            )
        if len(found) > 1:
            sentences.append(f"{_best(reference, found)}; {_efficiency(found)}.")
    return sentences


def _best(reference: str, found: Mapping[int, Times]) -> str:
    """Say how many workers are fastest: all numbers whose times are level with the least."""
    least = min(found.values(), key=lambda times: times.median)
    even = sorted(workers for workers, times in found.items() if level(times, least))
    if len(even) == 1:
        return f"{reference} is fastest with {counted(even[0], 'worker')}"
    names = f"{', '.join(map(str, even[:-1]))} or {even[-1]}"
    return f"{reference} is fastest with {names} workers, level within noise"


def _efficiency(found: Mapping[int, Times]) -> str:
    """Say what is left of the efficiency with most workers, and why that may be little."""
    most = max(found)
    one, all_of_them = found[1], found[most]
    least = one.interval[0] / all_of_them.interval[1] / most
    greatest = one.interval[1] / all_of_them.interval[0] / most
    efficiency = one.median / all_of_them.median / most
    if least <= 1 <= greatest:
        return f"efficiency stays at 100 % within noise with {most}"
    change = "falls to" if efficiency < 1 else "is"
    text = f"efficiency {change} {100 * efficiency:.0f} % with {most}"
    if efficiency < 1 and most > default_threads():
        text += f", as {most} share {counted(default_threads(), 'processor')}"
    return text


def local_memory(
    results: Sequence[PartResult], device: Device, *, basic: str, local: str, element_bytes: int
) -> list[str]:
    """Say which is faster by kernel time, and what memory and caches have to do with it."""
    sentences = []
    wins = losses = 0
    plain: Measurement | None = None
    for point, rows in each_point(results):
        found = next((row for row in rows if row.implementation == basic and row.ok), None)
        staged = {
            row.implementation: times
            for row in rows
            if row.implementation.partition("[")[0] == local and row.ok and (times := _doing(row))
        }
        reads = _doing(found) if found is not None else None
        if reads is None or not staged:
            continue
        plain = found
        best = min(staged.values(), key=lambda times: times.median)
        apart = not level(reads, best)
        wins += apart and best.median < reads.median
        losses += apart and best.median > reads.median
        others = ", ".join(f"{name} {times.median:.3g} ms" for name, times in staged.items())
        sentences.append(
            f"{point}: {basic} {reads.median:.3g} ms in kernels, {others}; "
            f"the best one is {_verdict(reads, best)}."
        )
    if plain is None:
        return ["Nothing was measured."]
    said = "It depends on the size"
    if wins == len(sentences):
        said = "Local memory wins"
    elif losses == len(sentences):
        said = "Local memory loses"
    elif not wins and not losses:
        said = "They are level within noise"
    return [f"{said}. {_kind(device)}.", *_caches(device, plain, element_bytes), *sentences]


def _doing(row: Measurement) -> Times | None:
    """Return the times in kernels, or the total ones where the device reports none."""
    return row.kernel_times or row.total_ms


def _verdict(reads: Times, best: Times) -> str:
    if level(reads, best):
        return "level with plain reads within noise"
    return f"{reads.median / best.median:.2f} times as fast as plain reads"


def _kind(device: Device) -> str:
    """Say what local memory is on this device."""
    own = getattr(device.handle, "local_mem_type", None) == OWN_LOCAL_MEMORY
    if own and device.kind != "cpu":
        return f"Local memory is memory of its own here, {size_text(device.local_memory)} per group"
    return (
        "Local memory is ordinary memory here, in the same caches: tiles save no reads of memory "
        "by themselves, but their values lie side by side, where plain reads stride over rows"
    )


def _caches(device: Device, plain: Measurement, element_bytes: int) -> list[str]:
    """Set the working set of the largest product against the cache, and what plain reads ask for.

    Without tiles each product of two elements reads both. Where that is more in a second than
    memory delivers, the caches have delivered it.
    """
    reads = _doing(plain)
    if plain.work is None or not plain.work.bytes or reads is None:
        return []
    sentences = []
    cache = int(getattr(device.handle, "global_mem_cache_size", 0) or 0)
    if cache:
        fits = "fits into" if plain.work.bytes <= cache else "exceeds"
        sentences.append(
            f"The largest working set of {size_text(plain.work.bytes)} {fits} the cache of "
            f"{size_text(cache)} that the driver reports."
        )
    peaks = stored_peaks(device)
    memory = peaks.copy_bytes if peaks else None
    if memory and plain.work.flops:
        rate = plain.work.flops * element_bytes / (reads.median * 1e-3)
        served = "so caches serve them" if rate > memory else "which memory could serve"
        sentences.append(
            f"Plain reads ask for {rate / 1e9:.3g} GB/s there, and memory copies "
            f"{memory / 1e9:.3g}, {served}."
        )
    return sentences
