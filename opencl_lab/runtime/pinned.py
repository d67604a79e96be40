"""Memory of the caller that is pinned for a device, and copies between both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.runtime.pieces import Piece
from opencl_lab.runtime.results import is_leased
from opencl_lab.runtime.session import session_of

Pair: TypeAlias = tuple[Piece, np.ndarray[Any, Any]]
"""A piece of a device array, and a part of the memory of the same size, also in one piece."""


class Pinned:
    """Memory that a device reads and writes at full speed, on a queue for copies alone.

    To pin it takes NVIDIA's driver 0.13 s for a GiB. It stays pinned, and is used, as long as this
    object lives.
    """

    def __init__(self, memory: np.ndarray[Any, Any], queue: cl.CommandQueue):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        self._buffer = cl.Buffer(queue.context, flags, hostbuf=memory)
        self._copies = cl.CommandQueue(queue.context, queue.device)

    def down(self, pairs: Sequence[Pair], after: cl.Event) -> None:
        """Copy pieces to the memory when an event has come, and wait."""
        self._copy(pairs, [after], up=False)

    def up(self, pairs: Sequence[Pair], after: cl.Event) -> None:
        """Copy parts of the memory to pieces when an event has come, and wait."""
        self._copy(pairs, [after], up=True)

    def _copy(self, pairs: Sequence[Pair], wait: list[cl.Event], up: bool) -> None:
        queue, kept = self._copies, []
        with session_of(queue).exclusive(queue):
            for piece, memory in pairs:
                both = (piece.block, memory) if up else (memory, piece.block)
                begin: dict[str, Any] = {"dst_offset" if up else "src_offset": piece.offset}
                event = cl.enqueue_copy(queue, *both, is_blocking=False, wait_for=wait, **begin)
                kept.append(event)
                queue.flush()
            queue.finish()  # before an event is deleted, which would wait with Python's lock held


def pinned_or_none(memory: np.ndarray[Any, Any], queue: cl.CommandQueue) -> Pinned | None:
    """Return memory pinned for the device of a queue; None if the driver refuses."""
    try:
        return Pinned(memory, queue)
    except cl.Error:
        return None


def marked(array: cl.array.Array) -> cl.Event:
    """Return an event that comes when all is done that an array and its queue wait for now."""
    queue: Any = array.queue
    events = [] if is_leased(array) else list(array.events)
    with session_of(queue).exclusive(queue):
        if events:
            cl.enqueue_barrier(queue, wait_for=events)
        event = cl.enqueue_marker(queue)
        queue.flush()
    return event
