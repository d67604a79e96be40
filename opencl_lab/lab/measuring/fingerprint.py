"""Fingerprints of buffers, computed on the device, so that contents need not be copied back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.queues import new_kernel
from opencl_lab.core.template import render
from opencl_lab.runtime.session import session_of

TEMPLATE = "common/fingerprint.cl.mako"
CPU_ITEMS, GPU_ITEMS = 1 << 10, 1 << 15
WORD = np.dtype(np.uint32).itemsize


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
