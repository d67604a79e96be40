"""Copying arrays to a device, and exporting them to other libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import DeviceSpec, device_of
from opencl_lab.runtime import staging
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    contiguous,
    is_device_array,
    native,
)
from opencl_lab.runtime.arrays import to_device as copy_to
from opencl_lab.runtime.call import Call, queue_for
from opencl_lab.runtime.results import block_of
from opencl_lab.runtime.session import Session, new_array, queue_or_default, session_of

CPU = 1
"""DLPack's type of host memory, ``kDLCPU``."""


def to_device(x: Any, device: DeviceSpec = None, queue: cl.CommandQueue | None = None) -> AnyArray:
    """Return an array on a device, where calls need no copies of it.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
        Or a DLPack object with host memory.
    device : str, int or Device, optional
        As `select_device` takes it.
    queue : pyopencl.CommandQueue, optional
        In place of `device`. By default a device array stays on its queue, and a host array goes to
        the library's queue on `select_device()`, which is its `Device.queue`.

    Returns
    -------
    pyopencl.array.Array
        A host array is copied and contiguous; an array of another device is copied by way of the
        host. An array that is already there is not copied: the result shares its memory, or is `x`.

    Raises
    ------
    InvalidProblem
        For arrays of Python objects, masked arrays, or both `device` and `queue`.
    DeviceNotFound, LaunchError
        If there is no such device, or it cannot be used.

    Examples
    --------
    >>> import numpy as np, opencl_lab as ol
    >>> keys = ol.to_device(np.array([3, 1, 2]), device="cpu")
    >>> ol.sort(keys).get()
    array([1, 2, 3])
    """
    wanted: Any = queue_for(None, queue, device)
    array: Any = native(as_array(x))
    if is_device_array(array):
        if array.queue is None:
            array = array.with_queue(queue_for(array, wanted))
        there = array.queue
        if wanted in (None, there) or (queue is None and wanted.device == there.device):
            return array
        if wanted.context == there.context:
            return array.with_queue(wanted)
        array = to_host(array)
    if array.dtype.hasobject:
        raise InvalidProblem(f"a device cannot hold {array.dtype}, Python's objects")
    wanted = queue_or_default(wanted)
    session = session_of(wanted)
    with session.exclusive(wanted):
        array = array if array.flags.forc else np.ascontiguousarray(array)
        if _through_pinned(session, array.nbytes, staging.LEAST_SENT):
            order = "C" if array.flags.c_contiguous else "F"
            made = new_array(wanted, array.shape, array.dtype, order=order)
            session.staging.send(wanted, block_of(made), array if order == "C" else array.T)
        else:
            made = copy_to(array, wanted)
        wanted.finish()  # the host array may change from now on
    made.events = []
    return made


def to_host(x: Any, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """Return an array on the host; one of a device is copied, through pinned memory if large.

    It is copied to `out`, a dense array of the same shape and dtype, if that is given.
    """
    if not is_device_array(x):
        if out is None:
            return np.asarray(x)
        np.copyto(out, x)
        return out
    queue = x.queue
    session = session_of(queue)
    dense = contiguous(x, Call(queue))
    with session.exclusive(queue):
        if dense.offset or not _through_pinned(session, dense.nbytes, staging.LEAST):
            return np.asarray(dense.get(ary=out))
        result: np.ndarray[Any, Any] = np.empty(dense.shape, dense.dtype) if out is None else out
        session.staging.fetch(queue, result, dense.base_data)
    return result


def _through_pinned(session: Session, nbytes: int, least: int) -> bool:
    return nbytes >= least and not session.device.unified_memory


@dataclass(frozen=True)
class Exported:
    """A device array as an argument of ``from_dlpack`` of other libraries: as host memory."""

    array: AnyArray

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device of the exported memory: ``kDLCPU``."""
        return CPU, 0

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
        array = self.array
        if dl_device is not None and dl_device[0] != CPU:
            raise BufferError(
                f"this is host memory, not of devices of DLPack's type {dl_device[0]}"
            )
        shared = device_of(array.queue.device).kind == "cpu"
        if copy is False and not shared:
            raise BufferError("to be used on the CPU, memory of this device must be copied")
        host = _mapped(array) if shared and not copy and array.size else to_host(array)
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


def to_dlpack(x: AnyArray) -> Exported:
    """Return an object from which ``from_dlpack`` of other libraries makes an array.

    Parameters
    ----------
    x : pyopencl.array.Array
        With a queue.

    Returns
    -------
    object with ``__dlpack__`` and ``__dlpack_device__``
        It is host memory (``kDLCPU``). That of a CPU device is shared without a copy; wait for the
        queue before reading what later calls write. That of other devices is copied.

    Raises
    ------
    InvalidProblem
        If `x` is not a device array, or has no queue.

    Examples
    --------
    >>> import numpy as np, opencl_lab as ol
    >>> there = ol.to_device(np.array([3, 1, 2]), device="cpu")
    >>> np.from_dlpack(ol.to_dlpack(ol.sort(there)))
    array([1, 2, 3])
    """
    if not is_device_array(x):
        raise InvalidProblem(f"{type(x).__name__} is no device array; to_device makes one")
    queue_for(x, None)
    return Exported(x)
