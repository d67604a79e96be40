"""Processors and memory of this process."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROCESSORS = frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())
"""Processors that this process may use; empty if the system does not tell.

They are looked up before any runtime is loaded: Intel's may bind the calling thread to one
processor, and OpenMP's does if ``OMP_PROC_BIND`` is set.
"""

CPU_INFO = Path("/proc/cpuinfo")
GROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files with the memory limit of a container, of both versions of control groups."""
USED_NAMES = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
"""The files beside them that say how much the container uses."""


def cpu_fields() -> dict[str, str]:
    """Return the fields of ``/proc/cpuinfo`` for the first processor, in lower case; {} if none."""
    with suppress(OSError), CPU_INFO.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(16384).splitlines()  # the rest is slow on large machines
        fields = (line.partition(":") for line in reversed(lines))
        return {name.strip().lower(): text.strip() for name, _, text in fields if text.strip()}
    return {}


def default_threads() -> int:
    """Return how many processors this process may use."""
    return len(PROCESSORS) or os.cpu_count() or 1


@contextmanager
def on_all_processors() -> Iterator[None]:
    """Let the calling thread run on all processors within the context.

    Threads and processes started in it inherit that. Otherwise they would inherit the one processor
    to which a runtime may have bound the caller.
    """
    if sys.platform != "linux" or not PROCESSORS:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, PROCESSORS)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def host_memory() -> float:
    """Return the bytes of memory of this machine or container; infinity if unknown."""
    found = math.inf
    with suppress(OSError, ValueError):
        if hasattr(os, "sysconf"):
            found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in GROUP_LIMITS:
        with suppress(OSError, ValueError):  # such as "max"
            found = min(found, int(path.read_text()))
    return found


def group_left() -> float:
    """Return the bytes that this container may still use; infinity if it has no limit."""
    left = math.inf
    for path in GROUP_LIMITS:
        with suppress(OSError, ValueError):
            used = int(path.with_name(USED_NAMES[path.name]).read_text())
            fields = dict(map(str.split, path.with_name("memory.stat").read_text().splitlines()))
            cached = fields.get("total_inactive_file", fields.get("inactive_file", 0))
            left = min(left, int(path.read_text()) - used + int(cached))
    return left
