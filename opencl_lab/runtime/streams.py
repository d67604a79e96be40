"""Work in parts: data too large for a device passes through it part by part.

While kernels work on one part, a thread reads the next one, and another thread writes the result of
the previous one. A device with memory of its own transfers them through pinned memory, chunk by
chunk (`runtime.staging`), so a whole part never exists on the host. A device that works on host
memory needs no copies: the two threads read and write its arrays.

Parts alternate between two input arrays and two output arrays. The host waits for each stage before
the next one begins, so that no two threads use one queue.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.memory import host_memory
from opencl_lab.core.wording import bytes_of
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.freeing import LOCK_SECONDS, free_unused, with_room
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import (
    Bytes,
    Copy,
    Jobs,
    Staging,
    Stop,
    abandon,
    finish_first,
    start,
)

LIMIT = "OCLAB_DEVICE_BYTES"
SHARE = {False: 0.75, True: 0.25}
"""Share of a device's memory for parts, by whether it is host memory."""
SLOTS = 2
"""Number of input arrays, and of output arrays."""
CHUNK = 4 << 20
"""Bytes that are read or written at once; a multiple of every element size."""


def memory_limit(device: Device) -> float:
    """Return the bytes of device memory that one call may use: ``$OCLAB_DEVICE_BYTES`` or all."""
    text = os.environ.get(LIMIT)
    if not text:
        return device.global_memory
    try:
        return bytes_of(text)
    except ValueError as error:
        raise InvalidProblem(f"${LIMIT}: {error}") from error


def limit_of_parts(device: Device, limit: float) -> float:
    """Return the bytes that all parts may use together, at most `limit`."""
    shared = device.unified_memory
    has = min(device.global_memory, host_memory()) if shared else device.global_memory
    return min(limit, SHARE[shared] * has)


def largest_fitting(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest size up to `most` that fits, by bisection; 0 if none does."""
    low, high = 0, most
    while low < high:
        size = (low + high + 1) // 2
        low, high = (size, high) if fits(size) else (low, size - 1)
    return low


class Lane:
    """Copies in one direction between the host and a device with memory of its own.

    They use pinned memory, chunk by chunk, on a queue of their own, one copy at a time.
    """

    def __init__(self, context: cl.Context, device: cl.Device):
        self.staging = Staging(context, device, chunk=CHUNK)
        self._queue = cl.CommandQueue(context, device)

    def send(self, target: Any, nbytes: int, read: Copy) -> None:
        """Fill chunks by `read`, copy them to a buffer, and wait."""
        self.staging.send_from(self._queue, target, nbytes, read)
        self._queue.finish()

    def fetch(self, nbytes: int, source: Any, write: Copy) -> None:
        """Copy a buffer to the host, pass its chunks to `write`, and wait."""
        self.staging.fetch_to(self._queue, nbytes, source, write)
        self._queue.finish()


@dataclass(frozen=True)
class StreamPart:
    """One part: functions that read its input and write its result, from several threads."""

    read: Copy
    write: Copy


class Stream:
    """Sends parts of one shape and type through a device; each result has the same shape and type.

    Kernels use `queue`; copies have queues of their own. `seconds` has the busy time of each stage,
    ``read``, ``work`` and ``write``, which overlap.
    """

    def __init__(self, queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.seconds = dict.fromkeys(("read", "work", "write"), 0.0)
        self._stop = Stop()
        session = session_of(queue)
        self._copies = not session.device.unified_memory

        def make() -> AnyArray:
            if not self._copies:
                return np.empty(shape, dtype)
            # Not from the pool of `queue`: copies are made by other queues.
            return with_room(lambda: cl.array.empty(queue, shape, dtype))

        self._lanes: list[Lane] = []
        if self._copies:
            free_unused(LOCK_SECONDS)  # the parts take most of the device
            self._lanes = [Lane(queue.context, queue.device) for _ in range(2)]
        self._queue = queue
        try:
            self._in = [make() for _ in range(SLOTS)]
            self._out = [make() for _ in range(SLOTS)]
        except cl.Error as error:
            raise explain(error, queue) from error

    def close(self) -> None:
        """Free pinned memory, which some drivers do not do by themselves."""
        for lane in self._lanes:
            lane.staging.free_held()

    def warm_up(self, work: Callable[[AnyArray, AnyArray], object]) -> None:
        """Run `work` once on arrays of any contents, for one-time costs such as builds."""
        work(self._in[0], self._out[0])

    def run(
        self,
        parts: Sequence[StreamPart],
        work: Callable[[AnyArray, AnyArray], None],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Run ``work(input, output)`` for each part, and `done` after each.

        The calling thread runs `work`, which gets two arrays in memory that the device uses, and
        returns when the second one is ready. After an error of any stage no thread uses memory of
        the caller.
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
                    bring(index + 1)  # into the array of the previous part, which is done
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

    def _read(self, part: StreamPart, slot: int) -> None:
        array, read = self._in[slot], self._stop.before(part.read)
        if not self._copies:
            in_chunks(array.reshape(-1).view(np.uint8), read)
            return
        self._lanes[0].send(array.base_data, array.nbytes, read)

    def _write(self, part: StreamPart, slot: int) -> None:
        array, write = self._out[slot], self._stop.before(part.write)
        if not self._copies:
            in_chunks(array.reshape(-1).view(np.uint8), write)
            return
        self._lanes[1].fetch(array.nbytes, array.base_data, write)


def in_chunks(data: Bytes, copy: Copy) -> None:
    """Copy from or to host memory, chunk by chunk."""
    for begin in range(0, data.size, CHUNK):
        copy(data[begin : begin + CHUNK], begin)
