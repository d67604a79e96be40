"""Sorting host keys on several devices, which take parts from one list.

Rows are sorted in batches. If there are fewer rows than devices, each is sorted in runs, which are
merged in pieces: cut exactly, and sorted once more, as keys that do not fit on a device
(`out_of_core`). Where each device has memory for its share, keys stay there (`resident`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.ops.sort.out_of_core import InMemory, Runs, batches, sort_part
from opencl_lab.ops.sort.part_sizes import Parts, shared_parts
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.resident import can_stay, sort_resident
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Copy
from opencl_lab.runtime.streams import Part, Stream, lanes_of
from opencl_lab.runtime.together import HandOut, Stop, new_result, on_each

Array: TypeAlias = np.ndarray[Any, Any]

InPlace: TypeAlias = Callable[[Parts, Any], None]
"""Makes a part on the host's memory, given how a device sorts parts, and its queue."""

LEAST, LEAST_SENT = 4 << 20, 8 << 30
"""Bytes of keys from which several devices take less time than one: on host memory, and with memory
of their own. Two H100 took 1.2 times as long as one for 1.6 GB, and more for fewer keys."""


@dataclass(frozen=True)
class _Unit:
    """A part for a stream, or for a device that works on the host's memory."""

    part: Part
    in_place: InPlace


def sort_together(
    problem: SortProblem,
    keys: Array,
    out: Array | None,
    devices: Sequence[Device],
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
) -> Array | None:
    """Sort rows of host keys on several devices, into `out` if given.

    The arrays are dense, of shape (rows, n), and share no memory. Return None where one device
    sorts them: if they are few, or a row by some bits, which cannot be merged.

    Raises
    ------
    InvalidConfig
        If one of the devices cannot sort such keys.
    OclabError
        An error of a device, which it names.
    """
    for device in devices:  # before any of them starts
        SORT_SOLVER.choose(problem, device, algorithm).configure(problem, device, config)
    least = LEAST if any(device.unified_memory for device in devices) else LEAST_SENT
    if keys.nbytes < least or (problem.bits and problem.rows < len(devices)):
        return None
    if can_stay(problem, devices):
        result = new_result(devices, keys.shape, keys.dtype) if out is None else out
        sort_resident(problem, keys, result, devices, algorithm, config)
        return result
    parts = shared_parts(problem, devices, algorithm, config)
    if problem.bits and parts[0].merges:
        return None
    result = new_result(devices, keys.shape, keys.dtype) if out is None else out
    if not parts[0].merges:
        _make(list(_rows(parts[0], keys, result)), parts, devices)
        return result
    one = replace(parts[0], whole=replace(problem, rows=1))
    aside = np.empty(problem.n, problem.dtype)
    for row, into in zip(keys, result, strict=True):
        runs = Runs(one, InMemory(row), InMemory(aside), 0)
        _make(list(_runs(runs, row, aside)), parts, devices)
        _make(list(_pieces(runs, into)), parts, devices)
    return result


def _rows(parts: Parts, keys: Array, result: Array) -> Iterator[_Unit]:
    """Yield batches of rows."""
    for index, part in enumerate(batches(parts, InMemory(keys), InMemory(result))):
        rows = slice(index * parts.part.rows, (index + 1) * parts.part.rows)
        yield _Unit(part, partial(_sort, keys[rows], result[rows]))


def _runs(runs: Runs, row: Array, aside: Array) -> Iterator[_Unit]:
    """Yield the runs of a row, which are sorted into `aside`."""

    def sort_run(run: int, parts: Parts, queue: Any) -> None:
        place = slice(*runs.edges[run : run + 2])
        _sort(row[None, place], aside[None, place], parts, queue)
        runs.samples.take(run, 0, aside[place])

    for run, part in enumerate(runs.to_be_sorted()):
        yield _Unit(part, partial(sort_run, run))


def _pieces(runs: Runs, result: Array) -> Iterator[_Unit]:
    """Yield the pieces of a sorted row, which are made of sorted runs."""
    for at, part in enumerate(runs.to_be_merged(InMemory(result))):
        target = result[slice(*runs.edges[at : at + 2])]
        yield _Unit(part, partial(_merge, part.read, target))


def _make(units: Sequence[_Unit], parts: Sequence[Parts], devices: Sequence[Device]) -> None:
    """Let devices make all units, each of them one at a time."""
    hand_out = HandOut([[unit] for unit in units], devices)

    def work(index: int, stop: Stop) -> None:
        queue, how = devices[index].queue(), parts[index]
        taken = iter(partial(hand_out.take, index), None)
        if devices[index].unified_memory:
            for unit in taken:
                stop.check()
                unit.in_place(how, queue)
            return

        def sort(given: Any, out: Any) -> None:
            stop.check()
            sort_part(how, queue, given, out)

        shape, lanes = (how.part.rows, how.part.n), lanes_of(session_of(queue))
        with lanes.lock:
            stream = Stream(queue, shape, how.part.dtype, lanes)
            stream.run((unit.part for unit in taken), sort)

    on_each(devices, work)


def _sort(keys: Array, out: Array, parts: Parts, queue: Any) -> None:
    """Sort rows in place of a whole part, which may be longer."""
    rows, n = keys.shape
    sort_part(replace(parts, part=replace(parts.part, rows=rows, n=n)), queue, keys, out)


def _merge(read: Copy, out: Array, parts: Parts, queue: Any) -> None:
    """Merge the runs that `read` copies, one after the other, by a stable sort."""
    runs = np.empty_like(out)
    read(runs.view(np.uint8), 0)
    _sort(runs[None], out[None], parts, queue)
