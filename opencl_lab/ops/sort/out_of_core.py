"""Sorting keys that do not fit into a device's memory, in parts.

Rows that fit go through the device in batches. A longer row goes through it twice. First, runs of
equal length are sorted and stored in scratch memory. Then the sorted row is made in pieces of that
same length: `multiway_split` finds the keys of each run that belong to a piece, and the device
sorts them. As the sort is stable, this merges the runs. The last run and the last piece are padded
with keys that sort last. So every part is the same problem, whatever the keys are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import Any, Protocol

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.ops.sort.codes import last_key
from opencl_lab.ops.sort.multiway_split import Samples
from opencl_lab.ops.sort.part_sizes import Parts, parts_of
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.execute import Execution
from opencl_lab.runtime.freeing import LOCK_SECONDS, free_unused
from opencl_lab.runtime.session import new_array, session_of
from opencl_lab.runtime.staging import Bytes
from opencl_lab.runtime.tiles import Part, run_parts


class StoredKeys(Protocol):
    """Storage of rows of keys, as bytes in the machine's order; used by several threads at once."""

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with whole keys, starting at byte `begin`."""

    def write(self, source: Bytes, begin: int) -> None:
        """Write whole keys, starting at byte `begin`."""


class InMemory:
    """Keys in a dense array of the host."""

    def __init__(self, array: np.ndarray[Any, Any]):
        self._bytes = array.reshape(-1).view(np.uint8)

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target`, starting at byte `begin`."""
        np.copyto(target, self._bytes[begin : begin + target.size])

    def write(self, source: Bytes, begin: int) -> None:
        """Write bytes, starting at byte `begin`."""
        np.copyto(self._bytes[begin : begin + source.size], source)


@dataclass(frozen=True)
class _Piece:
    """The input of one part: stretches of keys one after the other, then padding."""

    keys: StoredKeys
    begins: Sequence[int]  # byte offset in `keys` of each stretch
    ends: Sequence[int]  # byte offset in the part at which each stretch ends
    filler: Bytes  # the bytes of the padding key

    @property
    def nbytes(self) -> int:
        return self.ends[-1]

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with the part's input, starting at byte `begin` of it."""
        place, at = 0, int(np.searchsorted(self.ends, begin, "right"))
        while place < target.size and at < len(self.ends):
            started = self.ends[at - 1] if at else 0
            size = min(self.ends[at] - begin - place, target.size - place)
            if size:
                source = self.begins[at] + begin + place - started
                self.keys.read(target[place : place + size], source)
            place, at = place + size, at + 1
        rest = target[place:]
        rest.reshape(-1, self.filler.size)[:] = self.filler

    def write_to(self, target: StoredKeys, begin: int) -> Callable[[Bytes, int], None]:
        """Return a function that writes the part's result to `begin`, without the padding."""

        def write(source: Bytes, at: int) -> None:
            kept = source[: max(self.nbytes - at, 0)]
            if kept.size:
                target.write(kept, begin + at)

        return write


def sort_parts(
    parts: Parts,
    keys: StoredKeys,
    result: StoredKeys,
    scratch: Callable[[], AbstractContextManager[StoredKeys]],
    *,
    queue: Any = None,
    device: Device | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """Sort rows of keys in parts; return the seconds that each stage took. Stages overlap.

    `result` may be the same storage as `keys` where rows are not merged; otherwise `keys` are not
    changed, and `scratch` makes storage for one row. `report` is called with the number of
    `Parts.steps` that are done. Stages are ``read``, ``work`` and ``write``. With a device instead
    of a queue there are two more: ``kernels``, by their events, and ``build``, before all others.
    """
    times = queue is None
    if queue is None:
        assert device is not None
        queue = device.queue(profiling=True)
    whole, part = parts.whole, parts.part
    shape = (part.rows, part.n)
    seconds = dict.fromkeys(("read", "work", "write", *(("kernels",) if times else ())), 0.0)
    steps = count(1)

    def work(given: Any, out: Any) -> None:
        run = _sort(parts, queue, given, out)
        if times:
            seconds["kernels"] += run.kernel_ms * 1e-3

    def go(made: Sequence[Part]) -> None:
        spent = run_parts(made, shape, whole.dtype, work, queue, lambda: report(next(steps)))
        for stage, lasted in spent.items():
            seconds[stage] += lasted

    on_host = session_of(queue).device.unified_memory
    if not on_host:
        free_unused(LOCK_SECONDS)  # the parts take most of the device
    if times:  # build first, so that no other stage includes it
        begin = time.perf_counter()
        blank = [
            np.empty(shape, whole.dtype) if on_host else new_array(queue, shape, whole.dtype)
            for _ in range(2)
        ]
        _sort(parts, queue, *blank)
        del blank
        seconds["build"] = time.perf_counter() - begin
    if not parts.merges:
        go(_batches(parts, keys, result))
    else:
        with scratch() as aside:
            for first in range(0, whole.rows * whole.n, whole.n):
                runs = _Runs(parts, keys, aside, first)
                go(runs.to_be_sorted())
                go(runs.to_be_merged(result))
    return seconds


def _piece(problem: SortProblem, keys: StoredKeys, stretches: Iterable[tuple[int, int]]) -> _Piece:
    """Return a part made of stretches of keys, from one index to before another."""
    item = problem.dtype.itemsize
    begins, ends = zip(*stretches, strict=True)
    sizes = (item * (end - begin) for begin, end in zip(begins, ends, strict=True))
    filler = np.array([last_key(problem.dtype, problem.descending)], problem.dtype)
    return _Piece(
        keys, [item * begin for begin in begins], list(accumulate(sizes)), filler.view(np.uint8)
    )


def _batches(parts: Parts, keys: StoredKeys, result: StoredKeys) -> list[Part]:
    whole, length = parts.whole, parts.part.rows * parts.whole.n
    made = []
    for begin in range(0, whole.rows * whole.n, length):
        rows = _piece(whole, keys, [(begin, min(begin + length, whole.rows * whole.n))])
        made.append(Part(rows.read, rows.write_to(result, begin * whole.dtype.itemsize)))
    return made


class _Runs:
    """The runs of one row: sorted into `aside`, then merged.

    The row begins at index `first` of `keys`; `aside` has room for one row.
    """

    def __init__(self, parts: Parts, keys: StoredKeys, aside: StoredKeys, first: int):
        whole = parts.whole
        self._whole, self._keys, self._aside, self._first = whole, keys, aside, first
        self._item = whole.dtype.itemsize
        self._edges = [*range(0, whole.n, parts.part.n), whole.n]
        lengths = [end - begin for begin, end in pairwise(self._edges)]
        self._samples = Samples(lengths, whole.dtype, whole.descending)

    def to_be_sorted(self) -> list[Part]:
        """Return the parts that make the sorted runs."""
        made = []
        for index, (begin, end) in enumerate(pairwise(self._edges)):
            stretch = (self._first + begin, self._first + end)
            run = _piece(self._whole, self._keys, [stretch])
            put = run.write_to(self._aside, begin * self._item)
            made.append(Part(run.read, _sampled(put, self._samples, index, end - begin)))
        return made

    def to_be_merged(self, result: StoredKeys) -> list[Part]:
        """Return the parts that make the sorted row from the sorted runs."""
        self._samples.order()
        edges = self._edges
        starts = np.array(edges[:-1])
        cuts = [np.zeros_like(starts)]
        cuts += [self._samples.cut(rank, self._read) for rank in edges[1:-1]]
        cuts.append(np.diff(edges))
        made = []
        for at, low, high in zip(edges, cuts, cuts[1:], strict=False):
            stretches = zip((starts + low).tolist(), (starts + high).tolist(), strict=True)
            merged = _piece(self._whole, self._aside, stretches)
            place = (self._first + at) * self._item
            made.append(Part(merged.read, merged.write_to(result, place)))
        return made

    def _read(self, run: int, begin: int, end: int) -> np.ndarray[Any, Any]:
        found = np.empty(end - begin, self._whole.dtype)
        self._aside.read(found.view(np.uint8), (self._edges[run] + begin) * self._item)
        return found


def _sort(parts: Parts, queue: Any, given: Any, out: Any) -> Execution:
    """Sort one part and wait for it."""
    with session_of(queue).exclusive(queue):
        try:
            return SORT_SOLVER.run(
                parts.part,
                {"keys": given},
                algorithm=parts.algorithm.name,
                config=parts.config,
                queue=queue,
                out={"sorted": out},
            )
        finally:
            queue.finish()


def _sampled(
    write: Callable[[Bytes, int], None], samples: Samples, run: int, length: int
) -> Callable[[Bytes, int], None]:
    """Return a function that writes the keys of a sorted run and keeps samples of them."""

    def both(source: Bytes, begin: int) -> None:
        keys = source.view(samples.dtype)
        place = begin // keys.itemsize
        samples.take(run, place, keys[: max(length - place, 0)])
        write(source, begin)

    return both


def sort_array(
    problem: SortProblem,
    keys: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any] | None,
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
    queue: Any,
) -> np.ndarray[Any, Any]:
    """Sort rows of host keys that do not fit on the device at once, into `out` if given.

    The arrays are dense, of shape (rows, n), and share no memory.
    """
    result = np.empty(keys.shape, keys.dtype) if out is None else out
    parts = parts_of(problem, session_of(queue).device, algorithm, config)
    sort_parts(
        parts,
        InMemory(keys),
        InMemory(result),
        lambda: nullcontext(InMemory(np.empty(problem.n, problem.dtype))),
        queue=queue,
    )
    return result
