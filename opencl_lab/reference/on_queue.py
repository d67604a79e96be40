"""What PyOpenCL's own algorithms need, on the queue that our calls take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.device import Device
from opencl_lab.runtime.arrays import to_device
from opencl_lab.runtime.session import default_queue

__all__ = ["OnQueue"]


class OnQueue:
    """The library's queue on a device, and how arrays get there and back."""

    def __init__(self, device: Device):
        self.queue = default_queue(device)
        self.has_nan = False

    def put(self, array: np.ndarray[Any, Any]) -> cl.array.Array:
        """Copy an array to the device."""
        self.has_nan |= array.dtype.kind == "f" and bool(np.isnan(array).any())
        return to_device(np.ascontiguousarray(array), self.queue)

    def finish(self) -> None:
        """Wait for all that was enqueued."""
        self.queue.finish()

    def get(self, result: Any) -> np.ndarray[Any, Any]:
        """Return a result, which has a method `get`, as an array of the host."""
        array: np.ndarray[Any, Any] = result.get()
        return array
