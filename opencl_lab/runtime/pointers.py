"""Whether kernels can use memory of the host by its address, as a device claims or shows."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.pocl import linker_missing, no_room
from opencl_lab.runtime.declarations import with_declarations

WORDS = 4096
ADD = """
__kernel void add(__global int *words, const int amount)
{
    words[get_global_id(0)] += amount;
}
"""

UNASKED_CALLS = 3
"""Calls of a process that do without, as the kernel that shows it takes long to build."""

_shown: dict[int, bool] = {}
_told: dict[int, int] = {}
_lock = threading.Lock()


def takes_pointers(device: Device) -> bool:
    """Return whether kernels read and write memory of the host by its address.

    OpenCL promises that for devices with fine-grained system SVM. A runtime whose device is the
    processor of this process may do it without a promise, as there is no other memory; PoCL does.
    So on a CPU a kernel tries it, once in a process. To build that kernel takes as long as hundreds
    of calls gain, and many processes make few calls: so the first few get the answer no.
    """
    if device.shared_pointers or not device.unified_memory:
        return device.shared_pointers
    if device.kind != "cpu" or device.simulated:
        return False
    key = device.handle.int_ptr
    if key not in _shown:
        with _lock:
            if key not in _shown:
                _told[key] = _told.get(key, 0) + 1
                if _told[key] <= UNASKED_CALLS:
                    return False
                _shown[key] = _shows_pointers(device.handle)
    return _shown[key]


def _shows_pointers(handle: cl.Device) -> bool:
    """Let a kernel change memory of NumPy's at an odd address, and the host in between."""
    if linker_missing(handle.platform.version) or no_room(handle.platform.version):
        return False  # PoCL would end the process
    try:
        if not handle.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER:
            return False  # its memory may be another one
        context = cl.Context([handle])
        queue = cl.CommandQueue(context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a log is no failure
            text, options = with_declarations(handle.platform.version, ADD) or (ADD, ())
            kernel = cl.Kernel(cl.Program(context, text).build(["-w", *options]), "add")
        whole = np.arange(WORDS + 2, dtype=np.int32)
        words, right = whole[1:-1], whole.copy()
        for amount in (3, 7):
            kernel.set_arg(0, cl.SVM(words))
            kernel.set_arg(1, np.int32(amount))
            cl.enqueue_nd_range_kernel(queue, kernel, words.shape, (1,))
            queue.finish()
            words *= 2
            right[1:-1] = 2 * (right[1:-1] + amount)
        return bool((whole == right).all())
    except (cl.Error, AttributeError):
        return False
