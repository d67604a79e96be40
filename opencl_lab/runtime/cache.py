"""Executables that are cached for further calls, how much they may hold, and freeing it.

A context caches executables, and these hold programs and tables on the device. So all of it is
bounded where executables are: the one that was used least recently is dropped first, and with it
every program and table that no other one needs. Whoever still runs it holds it until then.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

import pyopencl as cl
import pyopencl.array

from opencl_lab.core.device import Device

MOST_EXECUTABLES = 256
MOST_PROGRAMS = 128
"""PoCL holds half a megabyte of the host's memory, or more, for each that it has cached."""
HELD_SHARE = 1 / 64
"""Share of a device's memory that tables and counters of executables take at most."""
LOCK_SECONDS = 2.0
"""How long to wait for other threads that use what might be freed; they may wait for this one."""

T = TypeVar("T")


class Cacheable(Protocol):
    """What `ExecutableCache` asks of an executable."""

    dropped: bool
    key: Hashable
    """Under which it is cached."""

    @property
    def programs(self) -> Collection[Hashable]:
        """The programs that it needs."""

    @property
    def memory(self) -> Mapping[Hashable, int]:
        """The bytes of each table, and of whatever else it holds on the device."""


V = TypeVar("V", bound=Cacheable)


def bytes_limit(variable: str, share: float, device: Device) -> float:
    """Return a limit in bytes: that of an environment variable, or a share of a device's memory."""
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return share * device.global_memory


class ExecutableCache(Generic[V]):
    """An LRU cache of executables by key; its owner locks it.

    They hold `nbytes` on the device, where what several share counts once, and `most_bytes` at
    most; but the last one stays, whatever it holds.
    """

    def __init__(self, most_bytes: float):
        self._most_bytes = most_bytes
        self._entries: OrderedDict[Hashable, V] = OrderedDict()
        self._programs: Counter[Hashable] = Counter()  # how many need each
        self._memory: Counter[Hashable] = Counter()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> V | None:
        """Return an executable and count it as used, or None."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: V) -> None:
        """Cache an executable, and drop others until the limits hold again."""
        if key in self._entries:
            self._drop(key)
        self._entries[key] = value
        value.key = key
        self._programs.update(set(value.programs))
        for item, nbytes in value.memory.items():
            self.nbytes += 0 if item in self._memory else nbytes
            self._memory[item] += 1
        while len(self._entries) > 1 and (
            len(self._entries) > MOST_EXECUTABLES
            or len(self._programs) > MOST_PROGRAMS
            or self.nbytes > self._most_bytes
        ):
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Drop all."""
        for key in list(self._entries):
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        value = self._entries.pop(key)
        self._programs -= Counter(set(value.programs))  # keeps what is above zero
        for item, nbytes in value.memory.items():
            self._memory[item] -= 1
            if not self._memory[item]:
                del self._memory[item]
                self.nbytes -= nbytes
        value.dropped = True
        for function in _when_dropped:
            function(value)


_when_dropped: list[Callable[[Cacheable], None]] = []
_when_freeing: list[Callable[[float], None]] = []
_lock = threading.Lock()


def call_when_dropped(function: Callable[[Cacheable], None]) -> None:
    """Call a function with each executable that is dropped, so that nothing else holds it."""
    _when_dropped.append(function)


def call_when_freeing(function: Callable[[float], None]) -> None:
    """Call a function to free what it can.

    It gets the seconds that it may wait for other threads; -1 is without end.
    """
    with _lock:
        _when_freeing.append(function)


def free_unused(seconds: float = -1) -> None:
    """Free everything on all devices that is held for further calls and not in use."""
    with _lock:
        functions = list(_when_freeing)
    for function in functions:
        function(seconds)
    # glibc keeps what runtimes for CPUs have freed, often several times what is in use.
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such call
        ctypes.CDLL(None).malloc_trim(0)


def with_room(run: Callable[[], T]) -> T:
    """Return what `run` returns; if memory runs out, free what is not in use and run it again."""
    try:
        return run()
    except cl.MemoryError:
        pass  # what its frames hold is free behind this line
    free_unused(LOCK_SECONDS)
    return run()


def new_array(
    queue: cl.CommandQueue | None, shape: tuple[int, ...], dtype: Any, allocator: Any
) -> cl.array.Array:
    """Return new memory on the device, as `pyopencl.array.empty` does, by way of `with_room`."""
    return with_room(lambda: cl.array.empty(queue, shape, dtype, allocator=allocator))
