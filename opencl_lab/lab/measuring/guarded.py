"""Device arrays between guard bytes, to catch kernels that write out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.plan import round_up
from opencl_lab.lab.measuring.poison import POISON

LEAST_GUARD, MOST_GUARD = 1 << 14, 1 << 20


class Guarded:
    """An `array` on the device inside a larger `buffer` that is filled with poison."""

    def __init__(self, queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self._queue = queue
        self._pattern = POISON
        nbytes = int(np.prod(shape)) * dtype.itemsize
        align = max(1, queue.device.mem_base_addr_align // 8)
        # As large as the array, within limits: kernels often write a few rows too far.
        guard = min(max(nbytes, LEAST_GUARD), MOST_GUARD)
        self._guard = round_up(guard, align)
        self._end = self._guard + nbytes
        self._size = self._end + self._guard
        # Whole words, as `Fingerprints` reads them.
        self.buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, round_up(self._size, 4))
        region = self.buffer.get_sub_region(self._guard, max(nbytes, 1))
        self.array = cl.array.Array(queue, shape, dtype, data=region)

    def poison(self, pattern: int = POISON) -> None:
        """Fill array and guards with the byte `pattern`."""
        self._pattern = pattern
        filled = np.full(1, pattern, np.uint8)
        cl.enqueue_fill_buffer(self._queue, self.buffer, filled, 0, self.buffer.size)

    def set(self, values: np.ndarray[Any, Any]) -> None:
        """Fill the array."""
        if values.size:
            self.array.set(values, self._queue)

    def get(self) -> np.ndarray[Any, Any]:
        """Return the array."""
        if not self.array.size:
            return np.empty(self.array.shape, self.array.dtype)
        values: np.ndarray[Any, Any] = self.array.get(self._queue)
        return values

    def damage(self) -> str | None:
        """Return where the guards were overwritten; None if they are intact."""
        for side, offset in (("before", 0), ("after", self._end)):
            words = np.empty(self._guard, np.uint8)
            cl.enqueue_copy(self._queue, words, self.buffer, src_offset=offset)
            changed = np.flatnonzero(words != self._pattern)
            if changed.size:
                distance = self._guard - changed[-1] if side == "before" else changed[0] + 1
                return f"byte {distance} {side} it was overwritten"
        return None
