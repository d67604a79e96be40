"""Parts of something that is too large for a device, which go through it one after the other.

While kernels work on one part, a thread brings the next one, and another thread takes away the one
before. A device with memory of its own gets and gives them through pinned memory, chunk by chunk
(`runtime.staging`), so that no part is ever whole on the host. A device that works on memory
of the host needs no copies: the two threads read and write its arrays.

Parts take turns in two arrays for what comes and two for what goes. Everything is waited for on the
host before the next stage takes it over, so that no two threads use one queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.execute import explain
from opencl_lab.runtime.kept import PATIENCE, free_kept, new_array
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Bytes, Copy, Jobs, Staging, abandon, finish_first, start

__all__ = ["SLOTS", "Part", "Stream"]

SLOTS = 2
"""Arrays for what comes, and for what goes."""
CHUNK = 4 << 20
"""Bytes that are read or written at once; a multiple of every element."""


class _Stopped(Exception):
    """Another stage has failed."""


@dataclass(frozen=True)
class Part:
    """One part: what fills it, and what takes its result, each from several threads at once."""

    read: Copy
    write: Copy


class Stream:
    """The way of parts of one shape and type through a device, and back as another such part.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Of the kernels. Copies have queues of their own.
    shape : tuple of int
    dtype : numpy.dtype

    Attributes
    ----------
    seconds : dict of str to float
        How long each stage was busy: ``read``, ``work``, ``write``. They overlap.
    """

    def __init__(self, queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.seconds = dict.fromkeys(("read", "work", "write"), 0.0)
        self._stop = threading.Event()
        session = session_of(queue)
        self._copies = not session.device.unified_memory

        def make() -> AnyArray:
            if not self._copies:
                return np.empty(shape, dtype)
            return new_array(queue, shape, dtype, None)

        if self._copies:
            free_kept(PATIENCE)  # the parts take most of the device
            context, device = queue.context, queue.device
            self._staging = [Staging(context, device, chunk=CHUNK) for _ in range(2)]
            self._queues = [cl.CommandQueue(context, device) for _ in range(2)]
        else:
            self._staging = []
        self._queue = queue
        try:
            self._in = [make() for _ in range(SLOTS)]
            self._out = [make() for _ in range(SLOTS)]
        except cl.Error as error:
            raise explain(error, queue) from error

    def close(self) -> None:
        """Let go of pinned memory, which some drivers do not do by themselves."""
        for staging in self._staging:
            staging.free_held()

    def warm_up(self, work: Callable[[AnyArray, AnyArray], object]) -> None:
        """Let `work` run once on arrays that hold anything, for what only its first run does."""
        work(self._in[0], self._out[0])

    def run(
        self,
        parts: Sequence[Part],
        work: Callable[[AnyArray, AnyArray], None],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Let `work` make the second array of the first one, for each part.

        Parameters
        ----------
        parts : sequence of Part
        work : callable
            Gets two arrays on the side where the device works, and returns when the second one
            is ready. The calling thread runs it.
        done : callable, optional
            Called as often as there are parts, while they are done.

        Raises
        ------
        LaunchError
            If the device fails or runs out of memory.
        Exception
            What any stage raises. No thread uses anything of the caller's afterwards.
        """
        reads, writes = Jobs(), Jobs()
        with (
            ThreadPoolExecutor(1, "oclab-read") as reading,
            ThreadPoolExecutor(1, "oclab-write") as writing,
        ):

            def bring(index: int) -> None:
                if index < len(parts):
                    stage = partial(self._timed, "read", self._read, parts[index], index % SLOTS)
                    reads.append(start(reading, stage))

            try:
                bring(0)
                for index, part in enumerate(parts):
                    slot = index % SLOTS
                    finish_first(reads)
                    if len(writes) == SLOTS:
                        finish_first(writes)
                    bring(index + 1)  # into the array of the part before, which is through
                    self._timed("work", work, self._in[slot], self._out[slot])
                    stage = partial(self._timed, "write", self._write, part, slot)
                    writes.append(start(writing, stage))
                    done()
                while writes:
                    finish_first(writes)
            except BaseException as error:
                self._stop.set()
                abandon(reads, writes)
                if isinstance(error, cl.Error):
                    raise explain(error, self._queue) from error
                raise

    def _timed(self, name: str, stage: Callable[..., object], *given: Any) -> None:
        begin = time.perf_counter()
        stage(*given)
        self.seconds[name] += time.perf_counter() - begin

    def _going_on(self, copy: Copy) -> Copy:
        """Return a copy that ends the stage once another one has failed."""

        def checked(data: Bytes, begin: int) -> None:
            if self._stop.is_set():
                raise _Stopped
            copy(data, begin)

        return checked

    def _read(self, part: Part, slot: int) -> None:
        array, read = self._in[slot], self._going_on(part.read)
        if not self._copies:
            _in_chunks(array.reshape(-1).view(np.uint8), read)
            return
        queue = self._queues[0]
        events = self._staging[0].send_from(queue, array.base_data, array.nbytes, read)
        if events is None:  # no memory can be pinned

            def send(chunk: Bytes, begin: int) -> None:
                read(chunk, begin)
                cl.enqueue_copy(queue, array.base_data, chunk, dst_offset=begin)

            _through(array.nbytes, send)
        queue.finish()

    def _write(self, part: Part, slot: int) -> None:
        array, write = self._out[slot], self._going_on(part.write)
        if not self._copies:
            _in_chunks(array.reshape(-1).view(np.uint8), write)
            return
        queue = self._queues[1]
        events = self._staging[1].fetch_to(queue, array.nbytes, array.base_data, write)
        if events is None:

            def fetch(chunk: Bytes, begin: int) -> None:
                cl.enqueue_copy(queue, chunk, array.base_data, src_offset=begin)
                write(chunk, begin)

            _through(array.nbytes, fetch)
        queue.finish()


def _in_chunks(data: Bytes, copy: Copy) -> None:
    for begin in range(0, data.size, CHUNK):
        copy(data[begin : begin + CHUNK], begin)


def _through(nbytes: int, copy: Copy) -> None:
    """Copy by way of one chunk of the host's memory."""
    chunk = np.empty(min(CHUNK, nbytes), np.uint8)
    for begin in range(0, nbytes, CHUNK):
        copy(chunk[: nbytes - begin], begin)
