"""Whether other processes use this process's processors, by the system's counters.

This runs at the start of every command, so it imports as little as possible.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from opencl_lab.drivers.processes import PROCESSORS, default_threads

SHARE = 0.25
"""Share of the allowed processors above which other processes disturb measurements."""
SHORTEST_SECONDS = 0.1
"""Least time between two samples, since the system counts in ticks of 10 ms."""
WORKING = (1, 2, 3, 6, 7, 8)
"""Columns of ``/proc/stat``: user, nice, system, irq, softirq, steal."""
COUNTS = Path("/proc/stat")
QUOTAS = (Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
"""Processor quotas of a container, in control groups version 2 and 1."""


@dataclass(frozen=True)
class Counters:
    """The counters at one time, all in seconds."""

    time: float
    """Of a monotonic clock."""
    working: float | None
    """Busy time of all processors that this process may use; None: unknown."""
    own: float
    """Processor time of this process and of its children that have ended."""


def sample() -> Counters:
    """Return the counters now."""
    used = os.times()
    own = used.user + used.system + used.children_user + used.children_system
    return Counters(time.monotonic(), _working(), own)


def _working() -> float | None:
    """Return the busy seconds of the allowed processors since the system started."""
    ours = {f"cpu{number}" for number in PROCESSORS}
    with suppress(OSError, ValueError, IndexError, OverflowError):
        lines = COUNTS.read_text(encoding="ascii", errors="replace").splitlines()
        rows = takewhile(lambda row: row[0].startswith("cpu"), map(str.split, lines))
        ticks = sum(int(row[column]) for row in rows if row[0] in ours for column in WORKING)
        if ticks and hasattr(os, "sysconf"):  # some sandboxes count nothing
            return float(ticks / os.sysconf("SC_CLK_TCK"))
    return None


def load_average() -> list[float] | None:
    """Return the load of the last 1, 5 and 15 minutes; None where it is unknown."""
    if hasattr(os, "getloadavg"):
        with suppress(OSError):
            return [round(value, 2) for value in os.getloadavg()]
    return None


def busy(before: Counters, now: Counters) -> str:
    """Return in words that other processes use the processors; empty if they do not.

    Their time is the processors' busy time between two samples less that of this process. Where
    the system does not count it, or the samples are too close, the last minute's load decides.
    """
    processors = default_threads()
    seconds = now.time - before.time
    if before.working is None or now.working is None or seconds < SHORTEST_SECONDS:
        return _busy_by_load()
    others = (now.working - before.working - (now.own - before.own)) / seconds
    granted = _granted(processors)
    if processors - others >= (1 - SHARE) * granted:
        return ""
    return (
        f"the machine is busy: other processes use {others:.1f} of {processors} processors, so "
        "times are longer and less certain"
    )


def _busy_by_load() -> str:
    load, processors = load_average(), os.cpu_count() or 1
    if load is None or load[0] <= SHARE * processors:
        return ""
    return (
        f"the machine may be busy: its load in the last minute was {load[0]:.1f} on {processors} "
        "processors, so times may be longer and less certain"
    )


def _granted(processors: int) -> float:
    """Return how many processors the container's quota grants, at most `processors`."""
    for path in QUOTAS:
        with suppress(OSError, ValueError, IndexError, ArithmeticError):
            fields = path.read_text(encoding="ascii").split()
            if len(fields) == 1:  # version 1 has a file for each number
                period = path.with_name(path.name.replace("quota", "period"))
                fields += period.read_text(encoding="ascii").split()
            if int(fields[0]) > 0:
                return min(processors, int(fields[0]) / int(fields[1]))
    return processors
