"""Contexts with the programs, kernels and scratch memory that belong to them."""

from __future__ import annotations

import linecache
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.tools

from opencl_lab.device import Device, check_fork, device_of
from opencl_lab.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.intel import adapted, is_intel_cpu
from opencl_lab.plan import Buffer, Launch, LocalMemory, Plan, Table, check_plan
from opencl_lab.pocl import linker_missing, no_room, restore_cache
from opencl_lab.runtime.declarations import with_declarations
from opencl_lab.runtime.host_results import HostResults
from opencl_lab.runtime.kept import KEPT_SHARE, Kept, bytes_limit, call_when_freeing, with_room
from opencl_lab.runtime.results import ResultPool
from opencl_lab.runtime.staging import Staging
from opencl_lab.template import Source, recent_digest, render
from opencl_lab.wording import counted

__all__ = [
    "Executable",
    "KernelInfo",
    "Session",
    "default_queue",
    "is_in_order",
    "session_of",
]

IDLE_SHARE = 0.25
"""Share of a device's memory that a pool keeps at most while nobody uses it."""
MOST_QUEUES = 16
"""Queues whose pools and counters are kept, where they are idle."""

DeviceMemory: TypeAlias = Any
"""A `pyopencl.Buffer`, or one from a memory pool; pyopencl has no type for both."""


BoundLaunch: TypeAlias = tuple[cl.Kernel, tuple[int, ...], tuple[int, ...], list[tuple[int, int]]]
"""A kernel, its global and local size, and the places of the buffers that its arguments are."""


def is_in_order(queue: cl.CommandQueue) -> bool:
    """Return whether each command of a queue waits for the one before."""
    return not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


@dataclass(frozen=True)
class KernelInfo:
    """A launch and what the driver says of its kernel.

    Parameters
    ----------
    kernel : str
    global_size, local_size : tuple of int
    max_work_group : int
        The driver's limit for this kernel, in work-items.
    preferred_multiple : int
        What a work-group's size should be a multiple of.
    local_bytes, private_bytes : int
        Memory of a work-group and of a work-item.
    """

    kernel: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    max_work_group: int
    preferred_multiple: int
    local_bytes: int
    private_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.kernel} {self.global_size} by {self.local_size}, group at most "
            f"{self.max_work_group}, multiple of {self.preferred_multiple} preferred, "
            f"{self.local_bytes} bytes local, {self.private_bytes} private"
        )


def _kernel_info(kernel: cl.Kernel, launch: Launch) -> KernelInfo:
    device = kernel.context.devices[0]

    def info(name: int) -> int:
        value: Any = kernel.get_work_group_info(name, device)
        return int(value)

    names = cl.kernel_work_group_info
    return KernelInfo(
        launch.kernel,
        launch.global_size,
        launch.local_size,
        info(names.WORK_GROUP_SIZE),
        info(names.PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
        info(names.LOCAL_MEM_SIZE),
        info(names.PRIVATE_MEM_SIZE),
    )


class Executable:
    """A plan with its kernels built for one context, ready to enqueue again and again."""

    def __init__(self, plan: Plan, session: Session):
        begin = time.perf_counter()
        self.plan = plan
        self._templates = tuple(dict.fromkeys(launch.template for launch in plan.launches))
        self._digest = recent_digest(self._templates)  # before they are rendered
        self.lock = threading.Lock()  # arguments are state of the kernel objects
        self.dropped = False
        self.key: Hashable = None
        self.programs = session.programs(plan.launches)  # the session keeps none itself
        self._kernels = [
            session.kernel(program, launch)
            for program, launch in zip(self.programs, plan.launches, strict=True)
        ]
        self._tables = {spec.name: session.table(spec) for spec in plan.with_role("table")}
        memory = {name: table.memory for name, table in self._tables.items()}
        for kernel, launch in zip(self._kernels, plan.launches, strict=True):
            _set_constant_arguments(kernel, launch, memory)
        # The others are set anew each time: buffers of the user, or from a pool.
        self._variable = [
            [
                (index, argument)
                for index, argument in enumerate(launch.arguments.values())
                if isinstance(argument, str) and argument not in memory
            ]
            for launch in plan.launches
        ]
        self._zeros: dict[int, dict[str, DeviceMemory]] = {}
        self.build_seconds = time.perf_counter() - begin

    @property
    def current(self) -> bool:
        """Whether it is still kept, and its templates are still what it was built from."""
        return not self.dropped and recent_digest(self._templates) == self._digest

    @property
    def memory(self) -> dict[Hashable, int]:
        """The bytes of each table on the device, and of the counters of one queue."""
        zeros = sum(spec.nbytes for spec in self.plan.with_role("zeros"))
        held: dict[Hashable, int] = {table: table.nbytes for table in self._tables.values()}
        return held | {self: zeros} if zeros else held

    def kernel_info(self) -> list[KernelInfo]:
        """Return what the device says of each launch's kernel, in order."""
        return [
            _kernel_info(kernel, launch)
            for kernel, launch in zip(self._kernels, self.plan.launches, strict=True)
        ]

    def enqueue(
        self,
        queue: cl.CommandQueue,
        buffers: Mapping[str, DeviceMemory],
        wait_for: Sequence[cl.Event] = (),
    ) -> list[cl.Event]:
        """Enqueue every launch in order and return their events."""
        events: list[cl.Event] = []
        in_order = is_in_order(queue)
        waits = list(wait_for)
        with self.lock:
            given = {**buffers, **self.zeros_of(queue)}
            if not in_order:  # scratch memory may still serve earlier commands
                waits.append(cl.enqueue_barrier(queue))
            for kernel, launch, variable in zip(
                self._kernels, self.plan.launches, self._variable, strict=True
            ):
                for index, name in variable:
                    kernel.set_arg(index, given[name])
                event = cl.enqueue_nd_range_kernel(
                    queue, kernel, launch.global_size, launch.local_size, wait_for=waits or None
                )
                events.append(event)
                waits = [] if in_order else [event]
        return events

    def bound(self, places: Mapping[str, int]) -> list[BoundLaunch]:
        """Return the launches with their arguments by the places of buffers instead of names."""
        return [
            (
                kernel,
                launch.global_size,
                launch.local_size,
                [(index, places[name]) for index, name in variable],
            )
            for kernel, launch, variable in zip(
                self._kernels, self.plan.launches, self._variable, strict=True
            )
        ]

    def zeros_of(self, queue: cl.CommandQueue) -> dict[str, DeviceMemory]:
        """Return the buffers of role ``zeros`` of one queue, whose commands take turns."""
        specs = self.plan.with_role("zeros")
        if not specs:
            return {}
        if queue.int_ptr not in self._zeros:
            if len(self._zeros) >= MOST_QUEUES:  # what still runs holds its own
                self._zeros.clear()
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            self._zeros[queue.int_ptr] = {
                spec.name: cl.Buffer(queue.context, flags, hostbuf=np.zeros(spec.shape, spec.dtype))
                for spec in specs
            }
        return self._zeros[queue.int_ptr]


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


def _check_signature(kernel: cl.Kernel, launch: Launch) -> None:
    """Compare the plan's argument names with the kernel's own, where the driver tells them."""
    if kernel.num_args != len(launch.arguments):
        raise LaunchError(
            f"kernel {launch.kernel} takes {counted(kernel.num_args, 'argument')}, "
            f"the plan gives {len(launch.arguments)}"
        )
    for index, name in enumerate(launch.arguments):
        try:
            declared = kernel.get_arg_info(index, cl.kernel_arg_info.NAME)
        except cl.Error:
            return
        if declared and declared != name:
            raise LaunchError(
                f"argument {index} of kernel {launch.kernel} is {declared!r} in the source "
                f"and {name!r} in the plan"
            )


class _DeviceTable:
    """A table on the device, which lives as long as an executable uses it."""

    def __init__(self, memory: DeviceMemory):
        self.memory = memory
        self.nbytes = int(memory.size)


# Two threads at once would each make a session or a queue, and pyopencl, which
# generates code for each new kernel object, warns of a clash.
_making = threading.RLock()


@contextmanager
def _forgotten_lines() -> Iterator[None]:
    """Drop the code that pyopencl generates inside from the cache of source lines.

    It is there for tracebacks alone. Each new kernel object would look through all of it for a
    name, which takes milliseconds after some hundreds.
    """
    before = set(linecache.cache)
    try:
        yield
    finally:
        for name in linecache.cache.keys() - before:
            if name.startswith("<generated: "):
                linecache.cache.pop(name, None)


class Session:
    """One OpenCL context: its programs, executables and scratch memory."""

    def __init__(self, context: cl.Context, device: Device):
        self.context = context
        self.device = device
        self.staging = Staging(context, device.handle)
        self._lock = threading.RLock()
        self._programs: weakref.WeakValueDictionary[tuple[str, tuple[str, ...]], cl.Program] = (
            weakref.WeakValueDictionary()
        )
        self._executables: Kept[Executable] = Kept(
            bytes_limit("OCLAB_KEPT_BYTES", KEPT_SHARE, device)
        )
        self._tables: weakref.WeakValueDictionary[Table, _DeviceTable] = (
            weakref.WeakValueDictionary()
        )
        self._pools: dict[int, pyopencl.tools.MemoryPool] = {}
        self._results: dict[int, ResultPool] = {}
        self._alone: dict[int, AbstractContextManager[Any]] = {}
        self._most_idle = bytes_limit("OCLAB_POOL_BYTES", IDLE_SHARE, device)
        self.host_results = HostResults(self._most_idle)
        call_when_freeing(self.free)

    def programs(self, launches: Sequence[Launch]) -> list[cl.Program]:
        """Return the program of each launch; launches that differ in sizes only share one."""
        known: list[tuple[Launch, cl.Program]] = []
        for launch in launches:
            found = (program for earlier, program in known if _same_program(earlier, launch))
            program = next(found, None)
            if program is None:
                program = self.program(render(launch.template, launch.params), launch.options)
            known.append((launch, program))
        return [program for _, program in known]

    def program(self, source: Source, options: tuple[str, ...]) -> cl.Program:
        """Build a program, or return the one built from the same source, while it is in use."""
        key = (source.digest, options)
        with self._lock:
            known = self._programs.get(key)
            if known is None:
                known = self._programs[key] = self._build(source, options)
            return known

    def _build(self, source: Source, options: tuple[str, ...]) -> cl.Program:
        version = self.device.platform_version
        missing = linker_missing(version) or no_room(version)
        if missing is not None:  # PoCL would end the process
            raise BuildError(missing, source=source.text)
        # PoCL would print how many warnings there were; errors still come with the log.
        flags = [*options, "-cl-kernel-arg-info", "-w"]
        of_intel = is_intel_cpu(self.device.kind, self.device.platform)
        text = adapted(source.text) if of_intel else source.text
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)  # a log is no failure
                quick = with_declarations(version, text)
                if quick is not None:
                    with suppress(cl.Error):
                        return self._built(quick[0], [*flags, *quick[1]])
                return self._built(text, flags)
        except cl.Error as error:
            if restore_cache():  # another process cleared it
                return self._build(source, options)
            raise BuildError(
                f"{source.template} did not build on {self.device.name}",
                log=str(error),
                source=text,
                options=tuple(flags),
            ) from error

    def _built(self, text: str, flags: list[str]) -> cl.Program:
        program = cl.Program(self.context, text)
        program.build(flags)
        return program

    def kernel(self, program: cl.Program, launch: Launch) -> cl.Kernel:
        """Return a new kernel object for a launch, checked against the kernel's own limits."""
        try:
            with _making, _forgotten_lines():
                kernel = cl.Kernel(program, launch.kernel)
        except cl.Error as error:
            known: Any = program.get_info(cl.program_info.KERNEL_NAMES)
            names = known.split(";")
            raise LaunchError(
                f"{launch.template} has no kernel {launch.kernel!r}; it has: {', '.join(names)}"
                if launch.kernel not in names
                else f"kernel {launch.kernel!r} of {launch.template} could not be created: {error}"
            ) from error
        _check_signature(kernel, launch)
        self._check_group(kernel, launch)
        return kernel

    def _check_group(self, kernel: cl.Kernel, launch: Launch) -> None:
        def info(name: int) -> Any:
            return kernel.get_work_group_info(name, self.device.handle)

        # A kernel built for exactly this size runs with it, also where the driver
        # names its general limit, as NVIDIA's does.
        required = info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE)
        if tuple(required[: len(launch.local_size)]) == launch.local_size:
            return
        limit = info(cl.kernel_work_group_info.WORK_GROUP_SIZE)
        if launch.work_group > limit:
            raise InvalidConfig(
                f"kernel {launch.kernel} runs with at most {counted(limit, 'item')} in a "
                f"work-group on {self.device.name}, not {launch.work_group}"
            )

    def executable(
        self, key: Hashable, make_plan: Callable[[], Plan], *, replan: bool = False
    ) -> Executable:
        """Return the executable for `key`, planning and building it at the first request.

        It is made anew once one of its templates has changed, or, with `replan`, its plan has.
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
        """Count an executable as used, unless another thread is making one."""
        if self._lock.acquire(blocking=False):
            try:
                self._executables.get(executable.key)
            finally:
                self._lock.release()

    def table(self, spec: Buffer) -> _DeviceTable:
        """Return the contents of a buffer of role ``table`` on the device, put there once."""
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
                memory = with_room(lambda: cl.Buffer(self.context, flags, hostbuf=array))
                known = self._tables[spec.table] = _DeviceTable(memory)
            return known

    def allocate(self, queue: cl.CommandQueue, nbytes: int) -> DeviceMemory:
        """Return memory from the pool of a queue.

        A block that is freed may be handed out again while earlier commands of the same queue
        still use it; the order of the queue keeps that safe. So it is for scratch memory alone.

        Raises
        ------
        pyopencl.MemoryError
            If there is none left, also after all that is not in use was given back.
        """
        pool = self._pools.get(queue.int_ptr) or self._new_pool(queue)
        memory = with_room(lambda: pool.allocate(nbytes))
        if pool.managed_bytes - pool.active_bytes > self._most_idle:
            pool.free_held()
        return memory

    def _new_pool(self, queue: cl.CommandQueue) -> pyopencl.tools.MemoryPool:
        with self._lock:
            if len(self._pools) >= MOST_QUEUES:  # a pool keeps its queue alive
                for pointer, pool in list(self._pools.items()):
                    if not pool.active_bytes:
                        del self._pools[pointer]
            pool = pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))
            return self._pools.setdefault(queue.int_ptr, pool)

    def results(self, queue: cl.CommandQueue) -> ResultPool:
        """Return the pool of an in-order queue for the results of calls."""
        pool = self._results.get(queue.int_ptr)
        if pool is None:
            with self._lock:
                while len(self._results) >= MOST_QUEUES:  # recipes and arrays may hold it
                    self._results.pop(next(iter(self._results))).retire()
                pool = ResultPool(queue, self._most_idle, self.alone(queue))
                pool = self._results.setdefault(queue.int_ptr, pool)
        return pool

    def alone(self, queue: cl.CommandQueue) -> AbstractContextManager[Any]:
        """Return the lock of a queue for who enqueues and waits.

        NVIDIA's driver crashes now and then where several threads do so at once.
        """
        return self._alone.setdefault(queue.int_ptr, threading.RLock())

    def free(self, patience: float = -1) -> None:
        """Give back what is kept and not in use, waiting `patience` seconds for other threads."""
        if self._lock.acquire(timeout=patience):
            try:
                self._executables.clear()
            finally:
                self._lock.release()
        for scratch in list(self._pools.values()):
            scratch.free_held()
        for results in list(self._results.values()):
            results.free_held()
        self.host_results.free_held()
        self.staging.free_held()


def _same_program(one: Launch, other: Launch) -> bool:
    return (one.template, one.options) == (other.template, other.options) and (
        one.params == other.params
    )


@cache
def _session(context_pointer: int, device_pointer: int) -> Session:
    context = cl.Context.from_int_ptr(context_pointer)
    return Session(context, device_of(cl.Device.from_int_ptr(device_pointer)))


def session_of(queue: cl.CommandQueue) -> Session:
    """Return the session of a queue's context and device.

    Raises
    ------
    LaunchError
        In a process that was forked after OpenCL had started, and if the context is gone.
    """
    check_fork()
    try:
        context, device = queue.context.int_ptr, queue.device.int_ptr
    except cl.LogicError as error:
        raise LaunchError(
            f"this queue has lost its context ({error}): Intel's CPU runtime frees one to which "
            "nothing but a queue refers, so keep it in a variable"
        ) from error
    with _making:
        return _session(context, device)


@cache
def _default_context(handle: Any) -> cl.Context:
    """Return the library's own context, which not every driver's queue keeps alive."""
    try:
        return cl.Context([handle])
    except cl.Error as error:
        raise LaunchError(f"no context on {handle.name.strip()}: {error}") from error


@cache
def _default_queue(handle: Any, profiling: bool) -> cl.CommandQueue:
    try:
        context = _default_context(handle)
        if not profiling:
            return cl.CommandQueue(context)
        return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    except cl.Error as error:
        raise LaunchError(f"no queue on {handle.name.strip()}: {error}") from error


def default_queue(device: Device, *, profiling: bool = False) -> cl.CommandQueue:
    """Return one of the library's own two queues on a device; both are in order.

    Parameters
    ----------
    device : Device
    profiling : bool
        Whether its events tell times, which makes each launch take longer on some drivers.

    Raises
    ------
    LaunchError
        If there can be none, as in a process that was forked after OpenCL had started.
    """
    check_fork()
    with _making:
        return _default_queue(device.handle, profiling)
