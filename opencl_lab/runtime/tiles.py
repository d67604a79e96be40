"""Work on tiles of host arrays in iterations, while copies and kernels overlap.

An iteration computes one tile of the result from a few tiles of inputs. A device holds few tiles,
in slots; `tile_schedule` assigns tiles to slots before anything runs. Then three threads work at
the same time, each in the order of the iterations:

    a thread      copies tiles to slots that no earlier iteration needs any more
    the caller    enqueues kernels, one iteration ahead of the one that it waits for
    a thread      copies finished tiles to the host

Only the calling thread starts copies, once it has seen that the iterations before them are done. So
no thread waits for another one, and each direction of copies has a queue of its own. (Several
devices share the first thread, see `together.run_tiles_together`.) For a device
that works on host memory, tiles are arrays there. A device with memory of its own transfers them
through pinned memory, chunk by chunk, so a whole tile need not exist on the host: parts of a file
are read and written by functions (`run_parts`).
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Bytes, Copy, Jobs, Stop, abandon, finish_first, start
from opencl_lab.runtime.streams import Lanes, in_chunks, lanes_of
from opencl_lab.runtime.tile_schedule import (
    HostArray,
    Iteration,
    Tile,
    TileSchedule,
    Upload,
    schedule,
)

PART_SLOTS = 2
"""Parts on the device, and results of parts: one in use, one being copied."""
OUT_SLOTS = 3
"""Tiles of the result on the device: one computed now, one next, one being copied to the host."""
AHEAD = 2
"""Most iterations that are enqueued and not yet known to be done."""


Send: TypeAlias = Callable[[Upload], Future[Any]]
"""Starts an upload and returns its job."""
Solve: TypeAlias = Callable[[Any, Mapping[str, AnyArray], AnyArray], Sequence[cl.Event]]
"""Solves a problem on tiles into a tile; returns the events of commands not waited for."""


class HostTile(NamedTuple):
    """A tile on the host: its shape, its bytes, and what fills or takes these."""

    shape: tuple[int, ...]
    nbytes: int
    copy: Copy


@dataclass(frozen=True)
class TileWork:
    """Iterations on host arrays, by one device.

    Rows of a tile lie along the last axis; tiles of arrays with more than two axes must be
    contiguous. The result shares no memory with `arrays`. Kernels use `queue`; copies have queues
    of their own.
    """

    plan: TileSchedule
    arrays: Mapping[str, HostArray]
    result: HostArray
    solve: Solve
    queue: cl.CommandQueue

    def view(self, upload: Upload) -> HostArray:
        """Return the memory that an upload reads."""
        return upload.tile.of(self.arrays[upload.tile.array])

    def source(self, tile: Tile) -> HostTile:
        """Return what fills a tile."""
        view = tile.of(self.arrays[tile.array])
        rows = _rows(view)

        def read(data: Bytes, begin: int) -> None:
            for part, place in _pieces(rows, data, begin):
                np.copyto(part, place)

        return HostTile(view.shape, view.nbytes, read)

    def target(self, tile: Tile) -> HostTile:
        """Return what takes a tile of the result."""
        view = tile.of(self.result)
        rows = _rows(view)

        def write(data: Bytes, begin: int) -> None:
            for part, place in _pieces(rows, data, begin):
                np.copyto(place, part)

        return HostTile(view.shape, view.nbytes, write)

    def prepare(self, lanes: Lanes | None) -> TileRun:
        """Return the run of all iterations."""
        how = self.result.dtype, self.solve, self.queue, OUT_SLOTS
        return TileRun(self.plan, self.source, self.target, *how, lanes)


def run_tiles(work: TileWork) -> dict[str, float]:
    """Run all iterations; return the seconds of ``read`` and ``write``, which overlap.

    The calling thread runs `solve`. After an error no thread and no command uses any array, and
    only some tiles of the result are written.
    """
    return _run(work.queue, work.prepare)


class Part(NamedTuple):
    """A part of data: functions that read its input and write its result, from several threads."""

    read: Copy
    write: Copy


def run_parts(
    parts: Sequence[Part],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    work: Callable[[AnyArray, AnyArray], object],
    queue: cl.CommandQueue,
    done: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Run ``work(input, output)`` for each part, of one shape and type, and `done` after each.

    The calling thread runs `work`, which gets two arrays in memory that the device uses, and
    returns when the second one is ready. Return the seconds of ``read``, ``work`` and ``write``,
    which overlap. After an error of any stage no thread uses memory of the caller.
    """
    seconds = {"work": 0.0}
    nbytes = math.prod(shape) * dtype.itemsize
    tiles = [((index, index + 1),) for index in range(len(parts))]

    def side(name: str) -> Callable[[Tile], HostTile]:
        return lambda tile: HostTile(shape, nbytes, getattr(parts[tile.bounds[0][0]], name))

    def solve(problem: Any, given: Mapping[str, AnyArray], out: AnyArray) -> Sequence[cl.Event]:
        begin = time.perf_counter()
        work(given["part"], out)
        seconds["work"] += time.perf_counter() - begin
        done()
        return ()

    plan = schedule(
        [Iteration(None, {"part": Tile("part", at)}, Tile("result", at), shape) for at in tiles],
        {"part": PART_SLOTS},
    )
    how = dtype, solve, queue, PART_SLOTS
    return seconds | _run(queue, partial(TileRun, plan, side("read"), side("write"), *how))


def _run(queue: cl.CommandQueue, prepare: Callable[[Lanes | None], TileRun]) -> dict[str, float]:
    session = session_of(queue)
    try:
        if session.device.unified_memory:
            return prepare(None).go()
        lanes = lanes_of(session)
        with lanes.lock:
            return prepare(lanes).go()
    except cl.Error as error:
        raise explain(error, queue) from error


class TileRun:
    """One run of all iterations."""

    def __init__(
        self,
        plan: TileSchedule,
        source: Callable[[Tile], HostTile],
        target: Callable[[Tile], HostTile],
        dtype: np.dtype[Any],
        solve: Solve,
        queue: cl.CommandQueue,
        out_slots: int,
        lanes: Lanes | None,
    ):
        self._plan, self._source, self._target, self._dtype = plan, source, target, dtype
        self._solve, self._queue, self._lanes = solve, queue, lanes
        self._out_slots = out_slots
        self._seconds = {"read": 0.0, "write": 0.0}
        self._stop = Stop()
        self._sent: Jobs = deque()
        self._begun = self._arrived = 0  # uploads started, and done
        self._written: deque[tuple[int, Future[Any]]] = deque()
        self._running: deque[tuple[int, Sequence[cl.Event]]] = deque()
        self._done = 0
        self._pool = session_of(queue).pool(queue)
        self._taken: list[tuple[int, Any]] = []
        sizes: dict[str, int] = defaultdict(int)
        for upload in plan.uploads:
            name = upload.tile.array
            sizes[name] = max(sizes[name], source(upload.tile).nbytes)
        self._slots = {
            name: [self._memory(sizes[name]) for _ in range(count)]
            for name, count in plan.slots.items()
        }
        counts = [math.prod(iteration.shape) for iteration in plan.iterations]
        largest = max(counts, default=0) * dtype.itemsize
        self._outs = [self._memory(largest) for _ in range(min(out_slots, len(counts)))]
        if lanes is not None:
            queue.finish()  # its earlier commands may still use memory from the pool

    def go(self, send: Send | None = None, stop: Stop | None = None) -> dict[str, float]:
        """Run the iterations.

        Without `send`, which starts an upload, a thread of this run makes them. `stop` ends the run
        before the next iteration or chunk.
        """
        self._stop = stop or Stop()
        with (
            ThreadPoolExecutor(1, "oclab-read") as reading,
            ThreadPoolExecutor(1, "oclab-write") as self._writing,
        ):
            self._send = send or (lambda upload: start(reading, partial(self.read, upload)))
            try:
                for index in range(len(self._plan.iterations)):
                    self._stop.check()
                    self._take(index)
                    while len(self._running) >= AHEAD:
                        self._see_done()
                while self._running:
                    self._see_done()
                self._finish_writes(len(self._plan.iterations))
            except BaseException:
                self._stop.set()
                try:
                    self._queue.finish()  # enqueued kernels use memory that is freed
                finally:
                    abandon(self._sent, deque(job for _, job in self._written))
                raise
        for nbytes, memory in self._taken:
            self._pool.give(nbytes, memory)
        return self._seconds

    def _memory(self, nbytes: int) -> Any:
        if self._lanes is None:
            return np.empty(max(nbytes, 1), np.uint8)
        memory = self._pool.take(max(nbytes, 1))
        self._taken.append((max(nbytes, 1), memory))
        return memory

    def _array(self, memory: Any, shape: tuple[int, ...]) -> AnyArray:
        """Return the beginning of a slot as an array."""
        dtype = self._dtype
        if self._lanes is None:
            return memory[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        return cl.array.Array(self._queue, shape, dtype, data=memory)

    def _take(self, index: int) -> None:
        """Enqueue an iteration once its tiles are on the device."""
        plan, iteration = self._plan, self._plan.iterations[index]
        self._bring()
        while self._begun < plan.needs[index]:
            self._see_done()
        while self._arrived < plan.needs[index]:
            if self._running and not self._sent[0].done():
                self._see_done()  # meanwhile, so that further copies can start
            else:
                finish_first(self._sent)
                self._arrived += 1
        self._finish_writes(index - self._out_slots + 1)
        inputs = {
            name: self._array(
                self._slots[tile.array][plan.taken[index][name]], self._source(tile).shape
            )
            for name, tile in iteration.inputs.items()
        }
        out = self._outs[index % self._out_slots]
        if iteration.continues:
            before = self._outs[(index - 1) % self._out_slots]
            inputs[iteration.continues] = self._array(before, iteration.shape)
        events = self._solve(iteration.problem, inputs, self._array(out, iteration.shape))
        self._running.append((index, events))
        if not events:  # it is done
            while self._running:
                self._see_done()

    def _bring(self) -> None:
        """Start the uploads whose slots no pending iteration needs."""
        uploads = self._plan.uploads
        while self._begun < len(uploads) and uploads[self._begun].after <= self._done:
            self._sent.append(self._send(uploads[self._begun]))
            self._begun += 1

    def _see_done(self) -> None:
        """Wait for the first pending iteration, and start the copies that may follow it."""
        index, events = self._running[0]
        if events:
            events[-1].wait()
        self._running.popleft()
        self._done = index + 1
        tile = self._plan.iterations[index].result
        if tile is not None:
            job = partial(self._write, tile, self._outs[index % self._out_slots])
            self._written.append((index, start(self._writing, job)))
        self._bring()

    def _finish_writes(self, end: int) -> None:
        """Wait until the results of the iterations before `end` are on the host."""
        while self._written and self._written[0][0] < end:
            self._written[0][1].result()
            self._written.popleft()

    def _slot(self, upload: Upload) -> Any:
        return self._slots[upload.tile.array][upload.slot]

    def read(self, upload: Upload, others: Sequence[tuple[TileRun, Upload]] = ()) -> None:
        """Copy a tile to its slot, and to those of other runs that need the same one."""
        begin = time.perf_counter()
        tile, slot = self._source(upload.tile), self._slot(upload)
        copy = self._stop.before(tile.copy)
        if tile.nbytes and self._lanes is None:
            in_chunks(slot[: tile.nbytes], copy)
        elif tile.nbytes:
            assert self._lanes is not None
            too = [(run._lanes.up, run._slot(its)) for run, its in others if run._lanes]
            self._lanes.up.send(slot, tile.nbytes, copy, too)
        self._seconds["read"] += time.perf_counter() - begin

    def _write(self, place: Tile, slot: Any) -> None:
        begin = time.perf_counter()
        tile = self._target(place)
        copy = self._stop.before(tile.copy)
        if self._lanes is None:
            in_chunks(slot[: tile.nbytes], copy)
        else:
            self._lanes.down.fetch(tile.nbytes, slot, copy)
        self._seconds["write"] += time.perf_counter() - begin


def _rows(view: HostArray) -> Bytes:
    """Return an array of any type as rows of bytes: a single row if it is contiguous."""
    if view.flags.c_contiguous:
        return view.reshape(1, -1).view(np.uint8)
    return view.view(np.uint8)


def _pieces(rows: Bytes, data: Bytes, begin: int) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield matching views of `data`, the bytes of a tile from offset `begin`, and of its rows."""
    width = rows.shape[1]
    first, offset = divmod(begin, width)
    if offset or data.size < width:
        size = min(width - offset, data.size)
        yield data[:size], rows[first, offset : offset + size]
        data, first = data[size:], first + 1
    whole = data.size // width
    if whole:
        yield data[: whole * width].reshape(whole, width), rows[first : first + whole]
    if data.size % width:
        rest = data[whole * width :]
        yield rest, rows[first + whole, : rest.size]
