"""Sorting keys that do not fit into a device's memory, part by part.

Rows that fit go through the device in batches. Longer ones do so twice: runs of equal length are
sorted and put aside; then the sorted row is made in pieces of the same length, each of the parts
of all runs that belong to it (`multiway_split`). The device sorts a piece as it has sorted the
runs, which merges it, since that is stable. The last run and the last piece are filled with keys
that no other one comes after. So everything is one problem of one size, whatever the keys are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
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
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Bytes
from opencl_lab.runtime.streams import Part, Stream


class Keys(Protocol):
    """Where rows of keys lie, as bytes in the machine's order; several threads use it at once."""

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with whole keys from the byte `begin`."""

    def write(self, source: Bytes, begin: int) -> None:
        """Put whole keys at the byte `begin`."""


class InMemory:
    """Keys in a dense array of the host."""

    def __init__(self, array: np.ndarray[Any, Any]):
        self._bytes = array.reshape(-1).view(np.uint8)

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` from the byte `begin`."""
        np.copyto(target, self._bytes[begin : begin + target.size])

    def write(self, source: Bytes, begin: int) -> None:
        """Put bytes at the byte `begin`."""
        np.copyto(self._bytes[begin : begin + source.size], source)


@dataclass(frozen=True)
class _Piece:
    """What a part is made of: stretches of keys one after the other, and then keys of one value."""

    keys: Keys
    begins: Sequence[int]  # the byte of `keys` at which each stretch begins
    ends: Sequence[int]  # the byte of the part at which it ends
    filler: Bytes  # the bytes of one more key, which stands for all that follow

    @property
    def nbytes(self) -> int:
        return self.ends[-1]

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with what begins at the byte `begin` of the part."""
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

    def write_to(self, target: Keys, begin: int) -> Callable[[Bytes, int], None]:
        """Return what puts the result of the part, without filling keys, to `begin`."""

        def write(source: Bytes, at: int) -> None:
            kept = source[: max(self.nbytes - at, 0)]
            if kept.size:
                target.write(kept, begin + at)

        return write


def sort_parts(
    parts: Parts,
    keys: Keys,
    result: Keys,
    scratch: Callable[[], AbstractContextManager[Keys]],
    *,
    queue: Any = None,
    device: Device | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """Sort rows of keys part by part; return the seconds that stages took, which overlap.

    `result` may be `keys`, which are not changed, where rows are not merged; else `scratch` makes
    room for one row. `report` gets how many of `Parts.steps` are done. Stages are ``read``,
    ``work`` and ``write``; and, with a device instead of a queue, ``kernels`` by their events, and
    ``build`` before all of them.
    """
    times = queue is None
    if queue is None:
        assert device is not None
        queue = device.queue(profiling=True)
    whole, part = parts.whole, parts.part
    stream = Stream(queue, (part.rows, part.n), whole.dtype)
    seconds = {"kernels": 0.0} if times else {}
    steps = count(1)

    def work(given: Any, out: Any) -> None:
        run = _sort(parts, queue, given, out)
        if times:
            seconds["kernels"] += run.kernel_ms * 1e-3

    def go(made: Sequence[Part]) -> None:
        stream.run(made, work, lambda: report(next(steps)))

    with closing(stream):
        if times:  # nobody measures how long it takes to build a kernel
            begin = time.perf_counter()
            stream.warm_up(lambda given, out: _sort(parts, queue, given, out))
            seconds["build"] = time.perf_counter() - begin
        if not parts.merges:
            go(_batches(parts, keys, result))
        else:
            with scratch() as aside:
                for first in range(0, whole.rows * whole.n, whole.n):
                    runs = _Runs(parts, keys, aside, first)
                    go(runs.to_be_sorted())
                    go(runs.to_be_merged(result))
    return {**stream.seconds, **seconds}


def _piece(problem: SortProblem, keys: Keys, stretches: Iterable[tuple[int, int]]) -> _Piece:
    """Return a part made of keys from some places to others."""
    item = problem.dtype.itemsize
    begins, ends = zip(*stretches, strict=True)
    sizes = (item * (end - begin) for begin, end in zip(begins, ends, strict=True))
    filler = np.array([last_key(problem.dtype, problem.descending)], problem.dtype)
    return _Piece(
        keys, [item * begin for begin in begins], list(accumulate(sizes)), filler.view(np.uint8)
    )


def _batches(parts: Parts, keys: Keys, result: Keys) -> list[Part]:
    whole, length = parts.whole, parts.part.rows * parts.whole.n
    made = []
    for begin in range(0, whole.rows * whole.n, length):
        rows = _piece(whole, keys, [(begin, min(begin + length, whole.rows * whole.n))])
        made.append(Part(rows.read, rows.write_to(result, begin * whole.dtype.itemsize)))
    return made


class _Runs:
    """Runs of one row, put aside when they are sorted, and then merged.

    The row begins with the key `first` of all `keys`; `aside` has room for one row.
    """

    def __init__(self, parts: Parts, keys: Keys, aside: Keys, first: int):
        whole = parts.whole
        self._whole, self._keys, self._aside, self._first = whole, keys, aside, first
        self._item = whole.dtype.itemsize
        self._edges = [*range(0, whole.n, parts.part.n), whole.n]
        lengths = [end - begin for begin, end in pairwise(self._edges)]
        self._samples = Samples(lengths, whole.dtype, whole.descending)

    def to_be_sorted(self) -> list[Part]:
        """Return parts that become the runs."""
        made = []
        for index, (begin, end) in enumerate(pairwise(self._edges)):
            stretch = (self._first + begin, self._first + end)
            run = _piece(self._whole, self._keys, [stretch])
            put = run.write_to(self._aside, begin * self._item)
            made.append(Part(run.read, _sampled(put, self._samples, index, end - begin)))
        return made

    def to_be_merged(self, result: Keys) -> list[Part]:
        """Return parts that become the sorted row, of runs that are."""
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
    with session_of(queue).alone(queue):
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
    """Return what writes the keys of a sorted run and takes samples of them."""

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
    """Sort rows of keys of the host that are too many for a device at once, into `out` if given.

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
