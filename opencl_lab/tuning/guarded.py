"""Device arrays with guard words round them, to catch kernels that write elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

__all__ = ["Guarded"]

POISON = 0xCD
GUARD_BYTES = 1 << 14


class Guarded:
    """An array on the device in the middle of a larger buffer full of poison.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
    shape, dtype
        Of the array.
    """

    def __init__(self, queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self._queue = queue
        self._guard = max(GUARD_BYTES, queue.device.mem_base_addr_align // 8)
        nbytes = int(np.prod(shape)) * dtype.itemsize
        self._end = self._guard + nbytes
        self._size = self._end + self._guard
        self._buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, self._size)
        region = self._buffer.get_sub_region(self._guard, max(nbytes, 1))
        self.array = cl.array.Array(queue, shape, dtype, data=region)

    def poison(self) -> None:
        """Fill array and guards with a byte that no right result is made of."""
        pattern = np.full(1, POISON, np.uint8)
        cl.enqueue_fill_buffer(self._queue, self._buffer, pattern, 0, self._size)

    def damage(self) -> str | None:
        """Return where the guards were overwritten, or None where they are intact."""
        for side, offset in (("before", 0), ("after", self._end)):
            words = np.empty(self._guard, np.uint8)
            cl.enqueue_copy(self._queue, words, self._buffer, src_offset=offset)
            changed = np.flatnonzero(words != POISON)
            if changed.size:
                distance = self._guard - changed[-1] if side == "before" else changed[0] + 1
                return f"byte {distance} {side} it was overwritten"
        return None
