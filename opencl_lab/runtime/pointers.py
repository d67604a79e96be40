"""Whether kernels can use host memory by address: as the device reports, or found by a test."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.queues import new_kernel, new_program
from opencl_lab.drivers.pocl import linker_missing, no_room
from opencl_lab.runtime.declarations import with_declarations

WORDS = 4096
ADD = """
__kernel void add(__global int *words, const int amount)
{
    words[get_global_id(0)] += amount;
}
"""

UNTESTED_CALLS = 3
"""The first calls of a process, which copy without a test: its kernel takes long to build."""

_shown: dict[int, bool] = {}
_told: dict[int, int] = {}
_lock = threading.Lock()


def takes_pointers(device: Device) -> bool:
    """Return whether kernels can read and write host memory by address.

    OpenCL guarantees this for devices with fine-grained system SVM. A runtime for the CPU of this
    process may support it without reporting so, as there is no other memory; PoCL does. So on a CPU
    a kernel tests it once per process. Building that kernel costs what hundreds of calls gain, and
    many processes make few calls: so the first few get the answer False.
    """
    if device.is_serial:  # a kernel is a function that this thread calls
        return True
    if device.shared_pointers or not device.unified_memory:
        return device.shared_pointers
    if device.kind != "cpu" or device.simulated:
        return False
    key = device.handle.int_ptr
    if key not in _shown:
        with _lock:
            if key not in _shown:
                _told[key] = _told.get(key, 0) + 1
                if _told[key] <= UNTESTED_CALLS:
                    return False
                _shown[key] = _shows_pointers(device.handle)
    return _shown[key]


def _shows_pointers(handle: cl.Device) -> bool:
    """Let a kernel and the host change NumPy's memory at an odd address in turn."""
    if linker_missing(handle.platform.version) or no_room(handle.platform.version):
        return False  # PoCL would end the process
    try:
        if not handle.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER:
            return False  # it may have other memory
        context = cl.Context([handle])
        queue = cl.CommandQueue(context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a build log is not a failure
            text, options = with_declarations(handle.platform.version, ADD) or (ADD, ())
            kernel = new_kernel(new_program(context, text).build(["-w", *options]), "add")
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
