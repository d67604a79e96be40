"""Copies of large host arrays through pinned memory, in chunks that overlap.

A driver moves 55 GB/s between a GPU and pinned host memory, and a fraction of that if it has to pin
or copy pages first. So an array goes through a few pinned buffers: while one is transferred to or
from the device, threads copy others from or to the array. These copies also touch the pages of a
new array for the first time, which takes a thread longer than anything else.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.plan import ceil_divide, round_up
from opencl_lab.drivers.processes import default_threads

LEAST = 4 << 20
LEAST_SENT = 16 << 20
"""Bytes of an array from which staging pays."""
CHUNK = 4 << 20
"""Bytes of one pinned buffer."""
LEAST_CHUNK = 1 << 20
"""Fewest bytes of a copy: passing smaller ones to a thread costs more than copying."""
WHOLE = 16
"""Bytes of the largest element; chunks are multiples of it."""
LIMIT = 64 << 20
"""Most bytes pinned for one context."""
MOST_THREADS = 6

Jobs: TypeAlias = deque[Future[Any]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Copy: TypeAlias = Callable[[Bytes, int], object]
"""Fills bytes from an offset, or consumes them; several threads call it at once."""


class Stopped(Exception):
    """Other work of the same call has failed, or the call was interrupted."""


class Stop:
    """Whether all work of a call is to end."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """End all work."""
        self._event.set()

    def check(self) -> None:
        """Raise `Stopped` if the work is to end."""
        if self._event.is_set():
            raise Stopped

    def before(self, copy: Copy) -> Copy:
        """Return a `Copy` that does `check` first."""

        def checked(data: Bytes, begin: int) -> None:
            self.check()
            copy(data, begin)

        return checked


def finish_first(jobs: Jobs) -> None:
    """Wait for the first of some jobs and remove it."""
    jobs[0].result()  # if this is interrupted, the job stays in the queue to be waited for
    jobs.popleft()


def abandon(*queues: Jobs) -> None:
    """Cancel and await all jobs, and remove them: a failed one would form a reference cycle."""
    for jobs in queues:
        for job in jobs:
            job.cancel()
    for jobs in queues:
        wait(jobs)
        jobs.clear()


def start(pool: ThreadPoolExecutor, job: Callable[[], object]) -> Future[Any]:
    """Run a job in a thread, or here if no new threads can be started."""
    try:
        return pool.submit(job)
    except RuntimeError:  # at interpreter shutdown, when other threads may still run
        job()
        done: Future[Any] = Future()
        done.set_result(None)
        return done


class _Slot:
    """A permanently mapped pinned buffer, and the last commands that use it.

    Where no memory can be pinned it is plain memory of the host.
    """

    def __init__(self, queue: cl.CommandQueue, nbytes: int):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        try:
            buffer = cl.Buffer(queue.context, flags, nbytes)
            # The array holds the mapping, and the mapping the buffer.
            mapped: Any = cl.enqueue_map_buffer(queue, buffer, access, 0, (nbytes,), np.dtype("u1"))
            self.bytes: Bytes = mapped[0]
        except cl.Error:
            self.bytes = np.empty(nbytes, np.uint8)
        self.events: Sequence[cl.Event] = ()

    def ready(self) -> Bytes:
        """Return the memory once no command uses it."""
        for event in self.events:
            event.wait()
        self.events = ()
        return self.bytes


class Staging:
    """The pinned buffers of one context, and copies through them.

    The caller of a copy holds the lock of its queue. Several threads may copy on queues of their
    own. Each buffer has `chunk` bytes; at most `limit` bytes are pinned. `threads` is the number of
    copying threads, by default half of the processors, at most `MOST_THREADS`.
    """

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device,
        *,
        chunk: int = CHUNK,
        limit: int = LIMIT,
        threads: int | None = None,
    ):
        self._context, self._device = context, device
        self._chunk, self._limit = chunk, limit
        self._threads = threads or max(1, min(MOST_THREADS, default_threads() // 2))
        # `with` on a Condition runs Python code, where Ctrl-C could leave the lock held forever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._idle: list[_Slot] = []
        self.pinned_bytes = 0  # now
        self._queue: cl.CommandQueue | None = None
        self._workers: ThreadPoolExecutor | None = None

    def send(
        self, queue: cl.CommandQueue, target: Any, array: np.ndarray[Any, Any]
    ) -> list[cl.Event]:
        """Copy a C-contiguous array to a buffer and return the commands' events.

        The array is no longer in use when this returns.
        """
        source = array.reshape(-1).view(np.uint8)

        def read(pinned: Bytes, begin: int) -> None:
            np.copyto(pinned, source[begin : begin + pinned.size])

        return self.send_from([(queue, target)], source.size, read)

    def send_from(
        self, targets: Sequence[tuple[cl.CommandQueue, Any]], nbytes: int, read: Copy
    ) -> list[cl.Event]:
        """Fill pinned memory by `read`, piece by piece, and copy it to buffers.

        Each buffer has a queue, which may be one of another context. Return the commands' events.
        If `read` raises, no command or thread uses memory of the caller afterwards.
        """
        events: list[cl.Event] = []

        def fill(slot: _Slot, piece: slice) -> Callable[[], object]:
            pinned = slot.ready()[: piece.stop - piece.start]
            return lambda: read(pinned, piece.start)

        def send(slot: _Slot, piece: slice) -> None:
            pinned = slot.bytes[: piece.stop - piece.start]
            slot.events = [
                cl.enqueue_copy(queue, target, pinned, dst_offset=piece.start, is_blocking=False)
                for queue, target in targets
            ]
            events.extend(slot.events)
            for queue, _ in targets:
                queue.flush()

        def each(slots: Sequence[_Slot], jobs: Jobs) -> None:
            free, filled = deque(slots), deque[tuple[_Slot, slice]]()
            for piece in self._pieces(nbytes):
                if not free:
                    finish_first(jobs)
                    slot, ready = filled.popleft()
                    send(slot, ready)
                    free.append(slot)
                slot = free.popleft()
                filled.append((slot, piece))
                jobs.append(self._start(fill(slot, piece)))
            for slot, piece in filled:
                finish_first(jobs)
                send(slot, piece)

        self._with_slots([queue for queue, _ in targets], nbytes, each)
        return events

    def fetch(
        self,
        queue: cl.CommandQueue,
        array: np.ndarray[Any, Any],
        source: Any,
        wait_for: Sequence[cl.Event] = (),
    ) -> list[cl.Event]:
        """Copy a buffer to a C-contiguous array, wait, and return the commands' events."""
        target = array.reshape(-1).view(np.uint8)

        def write(pinned: Bytes, begin: int) -> None:
            np.copyto(target[begin : begin + pinned.size], pinned)

        return self.fetch_to(queue, target.size, source, write, wait_for)

    def fetch_to(
        self,
        queue: cl.CommandQueue,
        nbytes: int,
        source: Any,
        write: Copy,
        wait_for: Sequence[cl.Event] = (),
    ) -> list[cl.Event]:
        """Copy a buffer to pinned memory, piece by piece, and pass each piece to `write`.

        Return the commands' events. If `write` raises, no command or thread uses memory of the
        caller afterwards.
        """
        events: list[cl.Event] = []

        def ask(slot: _Slot, piece: slice) -> None:
            pinned = slot.ready()[: piece.stop - piece.start]
            event = cl.enqueue_copy(
                queue,
                pinned,
                source,
                src_offset=piece.start,
                is_blocking=False,
                wait_for=list(wait_for) or None,
            )
            slot.events = [event]
            events.append(event)
            queue.flush()

        def take(slot: _Slot, piece: slice) -> Callable[[], object]:
            pinned = slot.ready()[: piece.stop - piece.start]
            return lambda: write(pinned, piece.start)

        def each(slots: Sequence[_Slot], jobs: Jobs) -> None:
            free, asked, taken = deque(slots), deque[tuple[_Slot, slice]](), deque[_Slot]()
            waiting = deque(self._pieces(nbytes))
            while waiting or asked:
                while waiting and free:
                    slot, piece = free.popleft(), waiting.popleft()
                    ask(slot, piece)
                    asked.append((slot, piece))
                slot, piece = asked.popleft()
                jobs.append(self._start(take(slot, piece)))
                taken.append(slot)
                while taken and (jobs[0].done() or not (free or asked)):
                    finish_first(jobs)
                    free.append(taken.popleft())
            while jobs:
                finish_first(jobs)

        self._with_slots([queue], nbytes, each)
        return events

    def _pieces(self, nbytes: int) -> list[slice]:
        """Return the pieces of a copy: a few for each thread, none longer than a slot."""
        wanted = ceil_divide(nbytes, 2 * self._threads)
        wanted = round_up(wanted, WHOLE)  # whole elements
        size = min(max(wanted, min(LEAST_CHUNK, self._chunk)), self._chunk)
        return [slice(start, min(start + size, nbytes)) for start in range(0, nbytes, size)]

    def _with_slots(
        self,
        queues: Sequence[cl.CommandQueue],
        nbytes: int,
        copy: Callable[[Sequence[_Slot], Jobs], None],
    ) -> None:
        """Copy with as many slots as available; afterwards nothing uses them."""
        jobs: Jobs = deque()
        slots = self._take(min(2 * self._threads, len(self._pieces(nbytes))))
        try:
            copy(slots, jobs)
        except BaseException:
            # Neither the array nor pinned memory may be in use once this is left.
            with ExitStack() as last:  # all of it, whatever fails
                for slot in slots:
                    last.callback(setattr, slot, "events", ())  # a failed one would raise again
                last.callback(abandon, jobs)
                for queue in queues:
                    last.callback(queue.finish)
            raise
        finally:
            self._give(slots)

    def _take(self, count: int) -> list[_Slot]:
        """Return at most `count` slots; wait for one if others use all that may be pinned."""
        with self._lock:
            while (
                not self._idle
                and self.pinned_bytes
                and self.pinned_bytes + self._chunk > self._limit
            ):
                self._changed.wait()
            taken = [self._idle.pop() for _ in range(min(count, len(self._idle)))]
            while len(taken) < count and (
                not self.pinned_bytes or self.pinned_bytes + self._chunk <= self._limit
            ):
                taken.append(self._new())
            return taken

    def _new(self) -> _Slot:
        if self._queue is None:
            self._queue = cl.CommandQueue(self._context, self._device)
        slot = _Slot(self._queue, self._chunk)
        self.pinned_bytes += self._chunk
        return slot

    def _give(self, slots: Sequence[_Slot]) -> None:
        with self._lock:
            self._idle += slots
            self._changed.notify_all()

    def free_held(self) -> None:
        """Free pinned memory that is not in use."""
        with self._lock:
            while self._idle:
                self._idle.pop().ready()
                self.pinned_bytes -= self._chunk
            if self._queue is not None:
                self._queue.finish()  # some drivers free memory only then

    def _start(self, copy: Callable[[], object]) -> Future[Any]:
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(self._threads, "oclab-copy")
        return start(self._workers, copy)
