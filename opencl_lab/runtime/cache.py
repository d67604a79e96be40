"""The LRU cache of executables, which bounds what they hold.

A context caches executables, and these hold programs and tables on the device. So bounding the
executables bounds everything: the least recently used one is dropped first, with every program
and table that no other executable needs. A call that still runs it holds it until its end.
"""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable

from opencl_lab.runtime.executable import Executable

MOST_EXECUTABLES = 256
MOST_PROGRAMS = 128
"""PoCL holds at least half a megabyte of host memory for each program."""
HELD_SHARE = 1 / 64
"""Largest share of a device's memory for the tables and counters of executables."""


def bytes_limit(variable: str, otherwise: float) -> float:
    """Return a limit in bytes: that of an environment variable, if it has one."""
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return otherwise


class ExecutableCache:
    """An LRU cache of executables by key; its owner locks it.

    They hold `nbytes` on the device, at most `most_bytes`; shared tables count once. The last
    executable stays, whatever its size.
    """

    def __init__(self, most_bytes: float):
        self._most_bytes = most_bytes
        self._entries: OrderedDict[Hashable, Executable] = OrderedDict()
        self._programs: Counter[Hashable] = Counter()  # number of executables that need each
        self._memory: Counter[Hashable] = Counter()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Executable | None:
        """Return an executable and mark it as recently used, or None."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, value: Executable) -> None:
        """Cache an executable, and drop others until all limits hold."""
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
        """Drop all executables."""
        for key in list(self._entries):
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        value = self._entries.pop(key)
        self._programs -= Counter(set(value.programs))  # subtraction drops counts of zero
        for item, nbytes in value.memory.items():
            self._memory[item] -= 1
            if not self._memory[item]:
                del self._memory[item]
                self.nbytes -= nbytes
        value.dropped = True
        for function in _when_dropped:
            function(value)


_when_dropped: list[Callable[[Executable], None]] = []


def call_when_dropped(function: Callable[[Executable], None]) -> None:
    """Register a function to call with each dropped executable, to drop its own references."""
    _when_dropped.append(function)
