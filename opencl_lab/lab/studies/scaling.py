"""Answers about scaling with workers, and about the benefit of local memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opencl_lab.core.device import Device
from opencl_lab.core.wording import counted, plain, size_text
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.answers import NOTHING, each_point
from opencl_lab.lab.studies.descriptor import Machine, PartResult

OWN_LOCAL_MEMORY = 1  # CL_LOCAL; 2 is a part of global memory


def by_workers(
    results: Sequence[PartResult], machine: Machine, *, references: Sequence[str]
) -> list[str]:
    """Return times by workers, at the largest size that ran with one worker, relative to that."""
    sentences = []
    for reference in references:
        measured = [(point, _by_workers(rows, reference)) for point, rows in each_point(results)]
        # At the largest sizes a single worker may be too slow to be run.
        point, found = next((item for item in reversed(measured) if 1 in item[1]), (None, {}))
        if point is None:
            sentences.append(f"{reference} did not run, so there is no answer.")
        else:
            sentences += _of_workers(f"{reference} at {point}", found, machine.processors)
    return sentences


def _by_workers(rows: Sequence[Measurement], reference: str) -> dict[int, Times]:
    """Return the times of one reference by its number of workers."""
    right = (row for row in rows if row.algorithm == reference and row.ok)
    return {row.workers: row.total_ms for row in right if row.total_ms}


def _of_workers(subject: str, found: Mapping[int, Times], processors: int) -> Iterator[str]:
    """Yield the times, the speed-ups, the efficiencies, and which number is fastest."""
    counts = sorted(found)
    times = _listed((f"{plain(found[count].median)} ms", count) for count in counts)
    yield f"{subject} takes {times.replace(' with 1', ' with 1 worker', 1)}."
    if len(counts) == 1:
        return
    gains = {count: found[1].median / found[count].median for count in counts[1:]}
    yield f"Its speed-up is {_listed((plain(gain), count) for count, gain in gains.items())}."
    shares = _listed((f"{100 * gain / count:.0f} %", count) for count, gain in gains.items())
    yield f"Its efficiency is {shares}{_why(found, counts[-1], processors)}."
    yield f"It is fastest with {_best(found)}."


def _listed(values: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{value} with {count}" for value, count in values)


def _best(found: Mapping[int, Times]) -> str:
    """Return which numbers of workers are fastest: those level with the least time."""
    least = min(found.values(), key=lambda times: times.median)
    even = sorted(workers for workers, times in found.items() if times.is_level_with(least))
    if len(even) == 1:
        return counted(even[0], "worker")
    return f"{', '.join(map(str, even[:-1]))} or {even[-1]} workers, level within noise"


def _why(found: Mapping[int, Times], most: int, processors: int) -> str:
    """Return a remark on the efficiency with the most workers."""
    if most > processors:
        return f"; {most} share {counted(processors, 'processor')}"
    one, all_of_them = found[1], found[most]
    least = one.interval[0] / all_of_them.interval[1] / most
    greatest = one.interval[1] / all_of_them.interval[0] / most
    return f"; within noise that is 100 % with {most}" if least <= 1 <= greatest else ""


def machine_of(device: Device) -> Machine:
    """Return the facts about a device and this computer that answers need."""
    peaks = stored_peaks(device)
    own = getattr(device.handle, "local_mem_type", None) == OWN_LOCAL_MEMORY
    return Machine(
        local_memory=device.local_memory,
        own_local_memory=own and device.kind != "cpu",
        cache_bytes=int(getattr(device.handle, "global_mem_cache_size", 0) or 0),
        copy_bytes=peaks.copy_bytes if peaks else None,
        processors=default_threads(),
    )


def local_memory(
    results: Sequence[PartResult], machine: Machine, *, basic: str, local: str, element_bytes: int
) -> list[str]:
    """Return which is faster by kernel time, and how memory and caches explain it."""
    sentences = []
    wins = losses = 0
    naive: Measurement | None = None
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
        naive = found
        best = min(staged.values(), key=lambda times: times.median)
        apart = not reads.is_level_with(best)
        wins += apart and best.median < reads.median
        losses += apart and best.median > reads.median
        others = ", ".join(f"{name} {plain(times.median)} ms" for name, times in staged.items())
        sentences.append(
            f"{point}: {basic} {plain(reads.median)} ms in kernels, {others}; "
            f"the best one is {_verdict(reads, best)}."
        )
    if naive is None:
        return [NOTHING]
    said = "It depends on the size"
    if wins == len(sentences):
        said = "Local memory wins"
    elif losses == len(sentences):
        said = "Local memory loses"
    elif not wins and not losses:
        said = "They are level within noise"
    return [f"{said}. {_kind(machine)}.", *_caches(machine, naive, element_bytes), *sentences]


def _doing(row: Measurement) -> Times | None:
    """Return the kernel times, or the total ones if the device reports none."""
    return row.kernel_times or row.total_ms


def _verdict(reads: Times, best: Times) -> str:
    if reads.is_level_with(best):
        return "level with plain reads within noise"
    return f"{plain(reads.median / best.median)} times as fast as plain reads"


def _kind(machine: Machine) -> str:
    """Return what local memory is on this device."""
    if machine.own_local_memory:
        size = size_text(machine.local_memory)
        return f"Local memory is memory of its own here, {size} per group"
    return (
        "Local memory is ordinary memory here, in the same caches: tiles save no reads of memory "
        "by themselves, but their values lie side by side, where plain reads stride over rows"
    )


def _caches(machine: Machine, naive: Measurement, element_bytes: int) -> list[str]:
    """Compare the largest working set with the cache, and the rate of plain reads with memory.

    Without tiles each product of two elements reads both. If that rate exceeds that of the memory,
    caches have served the reads.
    """
    reads = _doing(naive)
    if naive.work is None or not naive.work.bytes or reads is None:
        return []
    sentences = []
    cache = machine.cache_bytes
    if cache:
        fits = "fits into" if naive.work.bytes <= cache else "exceeds"
        sentences.append(
            f"The largest working set of {size_text(naive.work.bytes)} {fits} the cache of "
            f"{size_text(cache)} that the driver reports."
        )
    memory = machine.copy_bytes
    if memory and naive.work.flops:
        rate = naive.work.flops * element_bytes / (reads.median * 1e-3)
        served = "so caches serve the rest" if rate > memory else "enough for all of them"
        sentences.append(
            f"Plain reads ask for {plain(rate / 1e9)} GB/s there; memory copies "
            f"{plain(memory / 1e9)} GB/s, {served}."
        )
    return sentences
