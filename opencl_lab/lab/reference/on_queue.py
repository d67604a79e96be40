"""The queue and arrays for other libraries on OpenCL, the same as for our calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

from opencl_lab.core.device import Device
from opencl_lab.runtime.arrays import to_device


class OnQueue:
    """The library's queue on a device, with copies of arrays to the device and back."""

    def __init__(self, device: Device):
        self.queue = device.queue()
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.queue))

    def put(self, array: np.ndarray[Any, Any]) -> cl.array.Array:
        """Copy an array to the device."""
        return to_device(np.ascontiguousarray(array), self.queue)

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> cl.array.Array:
        """Return an uninitialised array from a pool, as our calls do for results."""
        return cl.array.empty(self.queue, shape, dtype, allocator=self._pool)

    def copy(self, source: cl.array.Array, target: cl.array.Array) -> None:
        """Enqueue a copy between two arrays of equal size without offsets."""
        from_there: Any = source.base_data
        there: Any = target.base_data
        cl.enqueue_copy(self.queue, there, from_there, byte_count=source.nbytes)

    def finish(self) -> None:
        """Wait for all enqueued work."""
        self.queue.finish()

    def get(self, result: Any) -> np.ndarray[Any, Any]:
        """Return a result, which has a method `get`, as a NumPy array."""
        array: np.ndarray[Any, Any] = result.get()
        return array
