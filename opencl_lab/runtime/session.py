"""Contexts with the programs, executables, tables and memory that belong to them."""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError
from opencl_lab.core.memory import host_memory
from opencl_lab.core.plan import Buffer, Plan, Table, check_plan
from opencl_lab.core.queues import MAKING, check_process, gate_of, within_gate
from opencl_lab.drivers.discovery import device_of, select_device
from opencl_lab.runtime.cache import HELD_SHARE, ExecutableCache, bytes_limit
from opencl_lab.runtime.executable import (
    MOST_QUEUES,
    DeviceTable,
    Executable,
    is_in_order,
)
from opencl_lab.runtime.freeing import call_when_freeing, memory_errors, with_room
from opencl_lab.runtime.host_results import HostResults
from opencl_lab.runtime.programs import Programs
from opencl_lab.runtime.results import PooledArray, QueuePool, attributes_of
from opencl_lab.runtime.staging import Staging

IDLE_SHARE = 0.25
"""Largest share of a device's memory that a pool holds idle."""


class Session(Programs):
    """One OpenCL context: its programs, executables, tables and memory."""

    def __init__(self, context: cl.Context, device: Device):
        super().__init__(context, device)
        self.staging = Staging(context, device.handle)
        has: float = device.global_memory
        if device.unified_memory:  # a container may have less
            has = min(has, host_memory())
        self._executables = ExecutableCache(bytes_limit("OCLAB_KEPT_BYTES", HELD_SHARE * has))
        self._tables: weakref.WeakValueDictionary[Table, DeviceTable] = (
            weakref.WeakValueDictionary()
        )
        self._pools: dict[int, QueuePool] = {}  # by queue
        self._locks: dict[int, AbstractContextManager[Any]] = {}
        self._most_idle = bytes_limit("OCLAB_POOL_BYTES", IDLE_SHARE * has)
        self.host_results = HostResults(self._most_idle)
        call_when_freeing(self.free)

    def executable(
        self, key: Hashable, make_plan: Callable[[], Plan], *, replan: bool = False
    ) -> Executable:
        """Return the executable for `key`; plan and build it at the first request.

        It is built again if one of its templates has changed, or, with `replan`, its plan.
        """
        with self._lock:
            known = self._executables.get(key)
            plan = make_plan() if known is None or replan or not known.current else known.plan
            if known is None or not known.current or known.plan != plan:
                check_plan(plan, self.device)
                known = Executable(plan, self)
                self._executables.put(key, known)
            return known

    def touch(self, executable: Executable) -> None:
        """Mark an executable as recently used, unless another thread holds the lock."""
        if self._lock.acquire(blocking=False):
            try:
                self._executables.get(executable.key)
            finally:
                self._lock.release()

    def table(self, spec: Buffer) -> DeviceTable:
        """Return the table of a buffer on the device; it is copied there once."""
        if spec.table is None:
            raise LaunchError(f"the buffer {spec.name!r} has no table")
        with self._lock:
            known = self._tables.get(spec.table)
            if known is None:
                array = np.ascontiguousarray(spec.table.make(), spec.dtype)
                if array.shape != spec.shape:
                    raise LaunchError(
                        f"the table {spec.name!r} has shape {array.shape}, not {spec.shape}"
                    )
                flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
                if not array.size:  # OpenCL has no empty buffers
                    array = np.zeros(1, spec.dtype)
                with memory_errors():
                    memory = with_room(lambda: cl.Buffer(self.context, flags, hostbuf=array))
                known = self._tables[spec.table] = DeviceTable(memory)
            return known

    def pool(self, queue: cl.CommandQueue) -> QueuePool:
        """Return the pool of a queue: for results, scratch memory and copies of host arrays.

        Its memory may be used again while earlier commands of the queue use it. On a queue that is
        out of order, who takes some enqueues a barrier first, as `BoundCall` does.
        """
        pool = self._pools.get(queue.int_ptr)
        if pool is None:
            with self._lock:
                while len(self._pools) >= MOST_QUEUES:  # bound calls and arrays may hold it
                    self._pools.pop(next(iter(self._pools))).retire()
                exclusive = partial(self.exclusive, queue)
                on_host = self.device.unified_memory
                most_left = 0 if on_host else self._most_idle / 4
                with within_gate(self.device.handle):
                    pool = QueuePool(queue, self._most_idle, exclusive, most_left, on_host)
                pool = self._pools.setdefault(queue.int_ptr, pool)
        return pool

    def exclusive(self, queue: cl.CommandQueue) -> AbstractContextManager[Any]:
        """Return a context in which a thread enqueues on a queue or waits for it.

        NVIDIA's driver occasionally crashes if several threads do so at once.
        """
        gate = gate_of(self.device.handle)
        return self.lock(queue) if gate is None else gate.opened()

    def lock(self, queue: cl.CommandQueue) -> AbstractContextManager[Any]:
        """Return the lock of `exclusive`; who takes it sets `available` as well, see `Gate`."""
        found = self._locks.get(queue.int_ptr)
        if found is None:
            gate = gate_of(self.device.handle)
            lock = threading.RLock() if gate is None else gate.lock
            found = self._locks.setdefault(queue.int_ptr, lock)
        return found

    @property
    def available(self) -> ctypes.c_uint32:
        """The number of the `Gate` of a hidden device; without effect for other devices."""
        gate = gate_of(self.device.handle)
        return ctypes.c_uint32() if gate is None else gate.available

    def free(self, seconds: float = -1) -> None:
        """Free what is not in use; wait at most `seconds` for other threads, -1 without limit."""
        if self._lock.acquire(timeout=seconds):
            try:
                self._executables.clear()
            finally:
                self._lock.release()
        for pool in list(self._pools.values()):
            pool.free_held()
        self.host_results.free_held()
        self.staging.free_held()


@cache
def _session(context_pointer: int, device_pointer: int) -> Session:
    context = cl.Context.from_int_ptr(context_pointer)
    return Session(context, device_of(cl.Device.from_int_ptr(device_pointer)))


def session_of(queue: cl.CommandQueue) -> Session:
    """Return the session of a queue's context and device.

    A process that was forked after OpenCL had started, and a queue without context, are refused.
    """
    check_process()
    try:
        context, device = queue.context.int_ptr, queue.device.int_ptr
    except cl.LogicError as error:
        raise LaunchError(
            f"this queue has lost its context ({error}): Intel's CPU runtime frees one to which "
            "nothing but a queue refers, so keep it in a variable"
        ) from error
    with MAKING:
        return _session(context, device)


def new_array(
    queue: cl.CommandQueue,
    shape: tuple[int, ...],
    dtype: Any,
    allocator: Any = None,
    order: str = "C",
) -> cl.array.Array:
    """Return an uninitialized device array, for commands of this queue or such that wait for it.

    Without an allocator it is in memory of the queue's pool, if that is in order. If memory runs
    out, unused memory is freed (see `with_room`); if there is still none, it raises `LaunchError`.
    """
    with memory_errors():
        if allocator is not None or not math.prod(shape) or not is_in_order(queue):
            return with_room(lambda: cl.array.empty(queue, shape, dtype, order, allocator))
        session = session_of(queue)
        with session.exclusive(queue):
            pool = session.pool(queue)
            block = pool.take(math.prod(shape) * np.dtype(dtype).itemsize)
        plain = cl.array.Array(queue, shape, dtype, order, data=block)
        return PooledArray.of(pool, block, attributes_of(plain))


def queue_or_default(queue: cl.CommandQueue | None) -> cl.CommandQueue:
    """Return `queue`, or if that is None, the library's queue on `select_device()`."""
    return select_device().queue() if queue is None else queue
