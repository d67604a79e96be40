"""DLPack: exchange of arrays with other libraries, without a copy where possible.

The memory of a CPU device is host memory and is exported by NumPy (``kDLCPU``). Memory of other
devices is exported as the handle of its buffer (``kDLOpenCL``: ``data`` is a ``cl_mem``). The
structures are those of ``dlpack.h`` before version 1, which all libraries read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
from numpy.lib.stride_tricks import as_strided

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import device_of
from opencl_lab.runtime.arrays import AnyArray, contiguous, copied
from opencl_lab.runtime.call import Call

CPU, OPENCL = 1, 4
"""Device types: ``kDLCPU`` and ``kDLOpenCL``."""
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""NumPy's type letters by DLPack's type codes."""
FRESH, USED = b"dltensor", b"used_dltensor"
"""Names of a capsule before and after it is consumed."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),  # in elements; null for C order
        ("byte_offset", c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _DELETER))


def _api(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_pointer = _api("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)


class _Stand(np.ndarray):
    """Stands for a device array: has its shape, dtype and strides, but not its elements."""

    memory: Any


@dataclass(frozen=True)
class Exported:
    """A device array as an argument of ``from_dlpack`` of other libraries."""

    array: AnyArray

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device of the exported memory."""
        device = device_of(self.array.queue.device)
        return (CPU, 0) if device.kind == "cpu" else (OPENCL, max(device.device_index, 0))

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule with the memory, once pending writes are done.

        Raises
        ------
        BufferError
            If it cannot be exported to `dl_device` at all, or not without a copy.
        """
        there, array = self.__dlpack_device__(), self.array
        kind, _ = dl_device or there
        if kind == OPENCL:
            return _capsule(copied(array, Call(array.queue)) if copy else array)
        if kind != CPU:
            raise BufferError(f"memory of OpenCL cannot be used on devices of DLPack's type {kind}")
        if copy is False and there[0] != CPU:
            raise BufferError("to be used on the CPU, memory of this device must be copied")
        in_place = there[0] == CPU and not copy and array.size
        host = _mapped(array) if in_place else contiguous(array, Call(array.queue)).get()
        if max_version is None:
            return host.__dlpack__()
        # NumPy before 2.1 lacks this argument; consumers then retry without it.
        return host.__dlpack__(max_version=max_version)


def _mapped(array: AnyArray) -> AnyArray:
    """Map an array to host memory; OpenCL cannot map negative strides."""
    ahead = tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)
    if not any(part.step < 0 for part in ahead):
        return array.map_to_host()
    return array[ahead].map_to_host()[ahead]


def _capsule(array: AnyArray) -> Any:
    """Return a capsule with the handle of a device array's buffer."""
    memory = array.base_data
    if not isinstance(memory, cl.MemoryObjectHolder):
        raise BufferError("an array that is empty, or in shared virtual memory, has no buffer")
    array.queue.finish()
    for event in array.events:
        event.wait()
    # NumPy makes the capsule and releases the memory in C: no Python code may run when a capsule is
    # deleted, as an exception may be pending.
    stand = as_strided(np.empty(1, array.dtype), array.shape, array.strides).view(_Stand)
    stand.memory = memory
    capsule = stand.__dlpack__()
    tensor = _Managed.from_address(_pointer(capsule, FRESH)).tensor
    tensor.data, tensor.byte_offset = memory.int_ptr, array.offset
    device = device_of(array.queue.device)
    tensor.device_type, tensor.device_id = OPENCL, max(device.device_index, 0)
    return capsule


class _CapsuleOwner:
    """Calls the deleter of an imported structure when its memory is no longer used."""

    def __init__(self, address: int):
        self._address = address

    def __del__(self) -> None:
        deleter = _Managed.from_address(self._address).deleter
        if deleter:
            deleter(self._address)


def imported(value: Any) -> cl.array.Array | None:
    """Return a DLPack object whose memory is an OpenCL buffer as an array; None for others.

    The array's queue is the library's if that has the buffer's context, else a new one.
    """
    if getattr(value, "__dlpack_device__", lambda: (None, 0))()[0] != OPENCL:
        return None
    capsule = value.__dlpack__()
    address = _pointer(capsule, FRESH)
    owner = _CapsuleOwner(address)
    _rename(capsule, USED)
    tensor = _Managed.from_address(address).tensor
    kind = KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        found = f"code {tensor.code} of {tensor.lanes} x {tensor.bits} bits"
        raise InvalidProblem(f"NumPy has no type for DLPack's {found}")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    memory: Any = cl.Buffer.from_int_ptr(tensor.data, retain=True)
    memory.owner = owner
    own = device_of(memory.context.devices[0]).queue()
    strides = None
    if tensor.strides:
        strides = tuple(dtype.itemsize * n for n in tensor.strides[: tensor.ndim])
    return cl.array.Array(
        own if own.context == memory.context else cl.CommandQueue(memory.context),
        tuple(tensor.shape[: tensor.ndim]),
        dtype,
        data=memory,
        offset=tensor.byte_offset,
        strides=strides,
    )
