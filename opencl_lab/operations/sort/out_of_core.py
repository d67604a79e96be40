"""Sorting keys that do not fit into a device's memory, part by part.

Rows that fit go through the device in batches. Longer ones do so twice: runs of equal length are
sorted and put aside; then the sorted row is made in pieces of the same length, each of the parts
of all runs that belong to it (`split`). The device sorts a piece as it has sorted the runs, which
merges it, since that is stable. The last run and the last piece are filled with keys that no other
one comes after. So everything is one problem of one size, whatever the keys are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Algorithm
from opencl_lab.operations.sort.codes import last_key
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.operations.sort.split import Samples
from opencl_lab.plan import check_plan
from opencl_lab.runtime.execute import Execution
from opencl_lab.runtime.kept import bytes_limit
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.runtime.staging import Bytes
from opencl_lab.runtime.streams import SLOTS, Part, Stream
from opencl_lab.space import Config
from opencl_lab.words import counted, size_text

__all__ = [
    "LIMIT",
    "Keys",
    "Parts",
    "memory_limit",
    "needs_parts",
    "parts_of",
    "sort_array",
    "sort_parts",
]

LIMIT = "OCLAB_DEVICE_BYTES"
SHARE = {False: 0.75, True: 0.25}
"""Of its memory that parts take; less where that is the host's, too."""
FEW = 8
"""Parts of a row at least, so that copies and kernels overlap, unless they are short."""
SHORT = 64 << 20
"""Bytes of a part that are enough for a device to run at its full rate."""
LEAST = 1024
"""Keys of a part at least."""
MOST_RUNS = 4096
ROOM, ROOM_ASIDE = 8, 16 << 20
"""What a plan takes for each byte of keys, and beside, is less."""


class Keys(Protocol):
    """Where rows of keys lie, as bytes in the machine's order; several threads use it at once."""

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` with whole keys from the byte `begin`."""

    def write(self, source: Bytes, begin: int) -> None:
        """Put whole keys at the byte `begin`."""


class InMemory:
    """Keys in an array of the host.

    Parameters
    ----------
    array : numpy.ndarray
        Dense.
    """

    def __init__(self, array: np.ndarray[Any, Any]):
        self._bytes = array.reshape(-1).view(np.uint8)

    def read(self, target: Bytes, begin: int) -> None:
        """Fill `target` from the byte `begin`."""
        np.copyto(target, self._bytes[begin : begin + target.size])

    def write(self, source: Bytes, begin: int) -> None:
        """Put bytes at the byte `begin`."""
        np.copyto(self._bytes[begin : begin + source.size], source)


@dataclass(frozen=True)
class Parts:
    """How a problem is parted.

    Parameters
    ----------
    whole : SortProblem
    part : SortProblem
        What the device sorts each time: rows of the whole, or a piece of one.
    algorithm : Algorithm
    config : Config
    """

    whole: SortProblem
    part: SortProblem
    algorithm: Algorithm[SortProblem]
    config: Config

    @property
    def merges(self) -> bool:
        """Whether rows are longer than a part."""
        return self.whole.n > self.part.n

    @property
    def runs(self) -> int:
        """Sorted runs of a row, or batches of rows."""
        if self.merges:
            return -(-self.whole.n // self.part.n)
        return -(-self.whole.rows // self.part.rows)

    @property
    def steps(self) -> int:
        """How many parts go through the device."""
        return 2 * self.runs * self.whole.rows if self.merges else self.runs

    @property
    def nbytes(self) -> int:
        """Bytes of a part."""
        return self.part.n * self.part.rows * self.part.dtype.itemsize


def memory_limit(device: Device) -> float:
    """Return how many bytes of a device's memory a sort may take: `LIMIT`, or all of them."""
    return bytes_limit(LIMIT, 1.0, device)


def _settled(
    problem: SortProblem, device: Device, algorithm: str, config: Mapping[str, Any] | None
) -> tuple[Algorithm[SortProblem], Config]:
    chosen = SORT.choose(problem, device, algorithm)
    return chosen, chosen.configure(problem, device, config)


def needs_parts(
    problem: SortProblem,
    device: Device,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    *,
    limit: float | None = None,
) -> bool:
    """Return whether a problem takes more memory than a device has, or than `limit`."""
    limit = memory_limit(device) if limit is None else limit
    nbytes = problem.n * problem.rows * problem.dtype.itemsize
    if ROOM * nbytes + ROOM_ASIDE <= min(limit, device.max_allocation):
        return False  # without planning what is planned again
    chosen, settled = _settled(problem, device, algorithm, config)
    return not _fits(chosen, settled, problem, device, limit, slots=1)


def _fits(
    algorithm: Algorithm[SortProblem],
    config: Config,
    problem: SortProblem,
    device: Device,
    limit: float,
    slots: int,
) -> bool:
    """Return whether a problem fits with so many arrays for its keys, and for the sorted ones."""
    plan = algorithm.plan(problem, config, device)
    try:
        check_plan(plan, device)
    except InvalidProblem:
        return False
    given = sum(buffer.nbytes for buffer in (*plan.with_role("in"), *plan.with_role("out")))
    return sum(buffer.nbytes for buffer in plan.buffers) + (slots - 1) * given <= limit


def parts_of(
    problem: SortProblem,
    device: Device,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    *,
    limit: float | None = None,
) -> Parts:
    """Return how a problem is parted so that its parts take no more memory than `limit`.

    Raises
    ------
    InvalidProblem
        If there would be too many of them.
    """
    limit = memory_limit(device) if limit is None else limit
    limit = min(limit, SHARE[device.unified_memory] * device.global_memory)

    def most(make: Callable[[int], SortProblem], whole: int) -> int:
        """Return the largest size, up to a whole one, that fits; 0 if none does."""
        low, high = 0, whole
        while low < high:
            size = (low + high + 1) // 2
            part = make(size)
            settled = _settled(part, device, algorithm, config)
            if _fits(*settled, part, device, limit, SLOTS):
                low = size
            else:
                high = size - 1
        return low

    item = problem.dtype.itemsize
    part = replace(problem, rows=1)
    rows = 0
    if problem.n * item <= limit:
        rows = most(lambda count: replace(problem, rows=count), problem.rows)
    if rows:
        rows = min(rows, max(-(-problem.rows // FEW), SHORT // max(problem.n * item, 1), 1))
        part = replace(problem, rows=rows)
    else:
        size = most(lambda n: replace(part, n=n), min(problem.n, int(limit) // item))
        size = min(size, max(-(-problem.n // FEW), SHORT // item))
        runs = -(-problem.n // max(size, 1))
        if size < min(LEAST, problem.n) or runs > MOST_RUNS:
            raise InvalidProblem(
                f"{size_text(limit)} of device memory are too few to sort {problem.title}: "
                f"there would be {counted(runs, 'run')} of {counted(size, 'key')}; allow more"
            )
        part = replace(part, n=-(-problem.n // runs))
    return Parts(problem, part, *_settled(part, device, algorithm, config))


@dataclass(frozen=True)
class _Piece:
    """What a part is made of: stretches of keys one after the other, and then keys of one value.

    Parameters
    ----------
    keys : Keys
    begins : sequence of int
        The byte of `keys` at which each stretch begins.
    ends : sequence of int
        The byte of the part at which it ends.
    filler : numpy.ndarray of uint8
        The bytes of one more key, which stands for all that follow.
    """

    keys: Keys
    begins: Sequence[int]
    ends: Sequence[int]
    filler: Bytes

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
    """Sort rows of keys part by part.

    Parameters
    ----------
    parts : Parts
    keys : Keys
        It is not changed.
    result : Keys
        May be `keys` itself where rows are not merged.
    scratch : callable
        Makes room for one row, if rows are merged.
    queue : pyopencl.CommandQueue, optional
    device : Device, optional
        In place of a queue, whose times are then told.
    report : callable, optional
        Gets how many of `Parts.steps` are done.

    Returns
    -------
    dict of str to float
        Seconds that stages took, which overlap: ``read``, ``work``, ``write``; and, with a device,
        ``kernels`` by their events, and ``build`` before all of them.

    Raises
    ------
    InvalidProblem, InvalidConfig, BuildError, LaunchError
    """
    times = queue is None
    if queue is None:
        assert device is not None
        queue = default_queue(device, profiling=True)
    whole, part = parts.whole, parts.part
    item = whole.dtype.itemsize
    filler = np.array([last_key(whole.dtype, whole.descending)], whole.dtype).view(np.uint8)
    stream = Stream(queue, (part.rows, part.n), whole.dtype)
    seconds = {"kernels": 0.0} if times else {}
    finished = 0

    def work(given: Any, out: Any) -> None:
        run = _sort(parts, queue, given, out)
        if times:
            seconds["kernels"] += run.kernel_ms * 1e-3

    if times:  # nobody measures how long it takes to build a kernel
        begin = time.perf_counter()
        stream.warm_up(lambda given, out: _sort(parts, queue, given, out))
        seconds["build"] = time.perf_counter() - begin

    def done() -> None:
        nonlocal finished
        finished += 1
        report(finished)

    def piece(source: Keys, *stretches: tuple[int, int]) -> _Piece:
        sizes = [(end - begin) * item for begin, end in stretches]
        ends = np.cumsum(sizes).tolist()
        return _Piece(source, [begin * item for begin, _ in stretches], ends, filler)

    def batches() -> None:
        made = []
        for first in range(0, whole.rows, part.rows):
            begin = first * whole.n
            end = begin + min(part.rows, whole.rows - first) * whole.n
            rows = piece(keys, (begin, end))
            made.append(Part(rows.read, rows.write_to(result, begin * item)))
        stream.run(made, work, done)

    def row(first: int, aside: Keys) -> None:
        edges = [*range(0, whole.n, part.n), whole.n]
        runs = list(pairwise(edges))
        samples = Samples([end - begin for begin, end in runs], whole.dtype, whole.descending)
        made = []
        for index, (begin, end) in enumerate(runs):
            run = piece(keys, (first + begin, first + end))
            put = _sampled(run.write_to(aside, begin * item), samples, index, end - begin)
            made.append(Part(run.read, put))
        stream.run(made, work, done)
        samples.settle()

        def read(run: int, begin: int, end: int) -> np.ndarray[Any, Any]:
            found = np.empty(end - begin, whole.dtype)
            aside.read(found.view(np.uint8), (edges[run] + begin) * item)
            return found

        starts = np.array(edges[:-1])
        cuts = [np.zeros_like(starts)]
        cuts += [samples.cut(rank, read) for rank in edges[1:-1]]
        cuts.append(np.diff(edges))
        made = []
        for at, low, high in zip(edges, cuts, cuts[1:], strict=False):
            stretches = zip((starts + low).tolist(), (starts + high).tolist(), strict=True)
            merged = piece(aside, *stretches)
            made.append(Part(merged.read, merged.write_to(result, (first + at) * item)))
        stream.run(made, work, done)

    if not parts.merges:
        batches()
    else:
        with scratch() as aside:
            for index in range(whole.rows):
                row(index * whole.n, aside)
    return {**stream.seconds, **seconds}


def _sort(parts: Parts, queue: Any, given: Any, out: Any) -> Execution:
    """Sort one part and wait for it."""
    with session_of(queue).alone(queue):
        try:
            return SORT.run(
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
    """Sort rows of keys of the host that are too many for a device at once.

    Parameters
    ----------
    problem : SortProblem
    keys, out : numpy.ndarray, shape (rows, n)
        Dense; without `out` a new array receives the result. They do not share memory.

    Raises
    ------
    InvalidProblem, InvalidConfig, BuildError, LaunchError
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
