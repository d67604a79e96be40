"""Plans with their kernels built, ready to enqueue."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Buffer, Launch, LocalMemory, Plan
from opencl_lab.core.queues import within_gate
from opencl_lab.core.template import is_watched, kernel_digest
from opencl_lab.runtime.freeing import with_room

MOST_QUEUES = 16
"""Most queues whose idle pools and counters are held."""

DeviceMemory: TypeAlias = Any
"""A `pyopencl.Buffer` or a pooled one; pyopencl has no common type."""


def is_in_order(queue: cl.CommandQueue) -> bool:
    """Return whether a queue executes its commands in order."""
    return not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


def make_zero(queue: cl.CommandQueue, counters: Iterable[cl.Buffer]) -> None:
    """Reset counters to zero after only some launches of a plan were enqueued.

    An error or Ctrl-C may come between two launches, of which only the last one resets them. The
    next call would otherwise start from wrong counts.
    """
    for buffer in counters:
        with suppress(cl.Error):  # the caller gets the earlier error
            if not is_in_order(queue):
                cl.enqueue_barrier(queue)
            cl.enqueue_fill_buffer(queue, buffer, np.zeros(1, np.uint8), 0, buffer.size)


def explain(error: cl.Error, queue: cl.CommandQueue) -> LaunchError:
    """Return a `LaunchError` for an error of the driver."""
    with within_gate(queue.device):
        name = queue.device.name.strip()
    if isinstance(error, cl.MemoryError):
        return LaunchError(f"{name} ran out of memory: {error}")
    return LaunchError(f"the launch failed on {name}: {error}")


class DeviceTable:
    """A table on the device, freed with the last executable that uses it."""

    def __init__(self, memory: DeviceMemory):
        self.memory = memory
        self.nbytes = int(memory.size)


class ProgramBuilder(Protocol):
    """Builds programs and kernels, and copies tables to the device: a `Session`."""

    def programs(self, launches: Sequence[Launch]) -> list[cl.Program]:
        """Return the program of each launch."""

    def kernel(self, program: cl.Program, launch: Launch) -> cl.Kernel:
        """Return a new kernel object for a launch."""

    def table(self, spec: Buffer) -> DeviceTable:
        """Return the buffer of a table, filled, on the device."""


class Executable:
    """A plan with its kernels built for one context, which can be enqueued repeatedly."""

    def __init__(self, plan: Plan, builder: ProgramBuilder):
        begin = time.perf_counter()
        self.plan = plan
        self._templates = tuple(dict.fromkeys(launch.template for launch in plan.launches))
        self._digest = kernel_digest(self._templates)  # before they are rendered
        self.watched = is_watched(self._templates)
        self.lock = threading.Lock()  # arguments are state of the kernel objects
        self.dropped = False
        self.key: Hashable = None
        self.programs = builder.programs(plan.launches)  # the builder holds no reference
        kernels = [
            builder.kernel(program, launch)
            for program, launch in zip(self.programs, plan.launches, strict=True)
        ]
        self._tables = {spec.name: builder.table(spec) for spec in plan.with_role("table")}
        memory = {name: table.memory for name, table in self._tables.items()}
        for kernel, launch in zip(kernels, plan.launches, strict=True):
            _set_constant_arguments(kernel, launch, memory)
        # Numbers and names of the other arguments, which each run sets: buffers of the user or of a
        # pool.
        self.launches: list[tuple[cl.Kernel, Launch, list[tuple[int, str]]]] = [
            (
                kernel,
                launch,
                [
                    (index, argument)
                    for index, argument in enumerate(launch.arguments.values())
                    if isinstance(argument, str) and argument not in memory
                ],
            )
            for kernel, launch in zip(kernels, plan.launches, strict=True)
        ]
        self.bound_calls: dict[Hashable, Any] = {}  # of this executable alone
        self._zeros: dict[int, dict[str, DeviceMemory]] = {}
        self.build_seconds = time.perf_counter() - begin

    @property
    def current(self) -> bool:
        """Whether it is still cached, and its templates have not changed since it was built."""
        return not self.dropped and kernel_digest(self._templates) == self._digest

    @property
    def memory(self) -> dict[Hashable, int]:
        """The bytes of each table on the device, and of the counters of one queue."""
        zeros = sum(spec.nbytes for spec in self.plan.with_role("zeros"))
        held: dict[Hashable, int] = {table: table.nbytes for table in self._tables.values()}
        return held | {self: zeros} if zeros else held

    def zeros_of(self, queue: cl.CommandQueue) -> dict[str, DeviceMemory]:
        """Return the buffers of role ``zeros`` of one queue, on which runs follow each other."""
        specs = self.plan.with_role("zeros")
        if not specs:
            return {}
        found = self._zeros.get(queue.int_ptr)
        if found is None:
            if len(self._zeros) >= MOST_QUEUES:  # pending runs hold their own
                self._zeros.clear()
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR

            def zeros(spec: Buffer) -> DeviceMemory:
                return cl.Buffer(queue.context, flags, hostbuf=np.zeros(spec.shape, spec.dtype))

            found = {spec.name: with_room(partial(zeros, spec)) for spec in specs}
            self._zeros[queue.int_ptr] = found  # another thread may clear it at any moment
        return found


def _set_constant_arguments(
    kernel: Any, launch: Launch, tables: Mapping[str, DeviceMemory]
) -> None:
    for index, argument in enumerate(launch.arguments.values()):
        if isinstance(argument, LocalMemory):
            kernel.set_arg(index, cl.LocalMemory(argument.nbytes))
        elif isinstance(argument, np.generic):
            kernel.set_arg(index, argument)
        elif isinstance(argument, str) and argument in tables:
            kernel.set_arg(index, tables[argument])
