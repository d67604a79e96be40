"""Device arrays between guard bytes, and fingerprints of buffers: what kernels write is caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.plan import ceil_divide, round_up
from opencl_lab.core.queues import new_kernel
from opencl_lab.core.template import render
from opencl_lab.lab.measuring.poison import POISON
from opencl_lab.runtime.session import session_of

TEMPLATE = "common/fingerprint.cl.mako"
CPU_ITEMS, GPU_ITEMS = 1 << 10, 1 << 15
WORD = np.dtype(np.uint32).itemsize
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


class Fingerprints:
    """Computes 64-bit fingerprints of buffers on the device of a queue, and waits for them.

    Different contents have the same fingerprint with a probability of 2**-64.
    """

    def __init__(self, queue: cl.CommandQueue):
        self._queue = queue
        session = session_of(queue)
        on_cpu = session.device.kind == "cpu"
        self._items = CPU_ITEMS if on_cpu else GPU_ITEMS
        self._program = session.program(render(TEMPLATE, {"CHUNKED": on_cpu}), ())
        self._kernel = new_kernel(self._program, "fingerprint")
        self._sums = np.zeros(self._items, np.uint64)
        self._device_sums = cl.Buffer(
            queue.context, cl.mem_flags.WRITE_ONLY, size=self._sums.nbytes
        )

    def of(self, buffer: Any) -> int:
        """Return the fingerprint of a buffer, whose size is a multiple of 4 bytes."""
        count = buffer.size // WORD
        sizes = np.uint64(count), np.uint64(ceil_divide(count, self._items))
        self._kernel(self._queue, (self._items,), None, buffer, self._device_sums, *sizes)
        cl.enqueue_copy(self._queue, self._sums, self._device_sums)
        return int(self._sums.sum())
