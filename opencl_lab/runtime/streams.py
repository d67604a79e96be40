"""How much of a device the parts of large data may take, and the lanes that carry them there."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.memory import host_memory
from opencl_lab.core.wording import bytes_of
from opencl_lab.runtime.freeing import call_when_freeing
from opencl_lab.runtime.session import Session
from opencl_lab.runtime.staging import Bytes, Copy, Staging

LIMIT = "OCLAB_DEVICE_BYTES"
SHARE = {False: 0.75, True: 0.25}
"""Share of a device's memory for parts, by whether it is host memory."""
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

    def send(
        self, target: Any, nbytes: int, read: Copy, others: Sequence[tuple[Lane, Any]] = ()
    ) -> None:
        """Fill chunks by `read`, copy them to a buffer, and wait.

        Each of `others` is the lane of another device, and a buffer there to copy them to as well.
        """
        targets = [(lane._queue, buffer) for lane, buffer in [(self, target), *others]]
        self.staging.send_from(targets, nbytes, read)
        for queue, _ in targets:
            queue.finish()

    def fetch(self, nbytes: int, source: Any, write: Copy) -> None:
        """Copy a buffer to the host, pass its chunks to `write`, and wait."""
        self.staging.fetch_to(self._queue, nbytes, source, write)
        self._queue.finish()


class Lanes:
    """A session's copies in both directions, used by one call at a time."""

    def __init__(self, session: Session):
        handle = session.device.handle
        self.up, self.down = (Lane(session.context, handle) for _ in range(2))
        self.lock = threading.Lock()
        call_when_freeing(self.free)

    def free(self, seconds: float = -1) -> None:
        """Free pinned memory, unless a call is copying."""
        if self.lock.acquire(blocking=False):
            try:
                self.up.staging.free_held()
                self.down.staging.free_held()
            finally:
                self.lock.release()


_lanes: weakref.WeakKeyDictionary[Session, Lanes] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def lanes_of(session: Session) -> Lanes:
    """Return the lanes of a session."""
    with _lock:
        found = _lanes.get(session)
        if found is None:
            found = _lanes[session] = Lanes(session)
        return found


def in_chunks(data: Bytes, copy: Copy) -> None:
    """Copy from or to host memory, chunk by chunk."""
    for begin in range(0, data.size, CHUNK):
        copy(data[begin : begin + CHUNK], begin)
