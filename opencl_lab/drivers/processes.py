"""Processors and variables of this process."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from opencl_lab.drivers.pinning import UNITS, WORKERS, share

SHARE = share(os.environ)
"""Processors of this rank of MPI, or None."""
PROCESSORS = SHARE or frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ())
"""Processors that this process may use, those of a rank of MPI; empty if the system does not tell.

They are looked up before any runtime is loaded: Intel's may bind the calling thread to one
processor, and OpenMP's does if ``OMP_PROC_BIND`` is set.
"""

AFFINITY, OPENMP = "POCL_AFFINITY", "OMP_PROC_BIND"
"""Variables by which PoCL binds its threads, and OpenMP may have bound the calling one."""
TASKS, MARK = Path("/proc/self/task"), "oclab-bound"
"""Where the threads of this process are, and the name of those that are bound."""
CPU_INFO = Path("/proc/cpuinfo")
ARENA_MAX = -8  # of `mallopt`


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


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the context, for a library that reads them there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def own_share() -> Iterator[None]:
    """Let PoCL, if it starts in this context, use the processors of this rank of MPI alone."""
    if SHARE is None:
        yield
        return
    with variables({WORKERS: str(len(SHARE)), UNITS: str(len(SHARE))}), on_all_processors():
        yield


@contextmanager
def bound_threads() -> Iterator[None]:
    """Bind the threads that the calling one starts in this context, each to a processor.

    Unless bound, PoCL's threads often share one core and run at half speed. By its own variable it
    binds them to processors 0, 1, 2 and so on, whichever are this process's, and ends the process
    if one does not exist. So it is done here, if there are as many threads as processors; a user's
    ``$POCL_AFFINITY`` stands. Threads inherit the name of the one that starts them, by which they
    are told from those that others start meanwhile.
    """
    name = TASKS / str(threading.get_native_id()) / "comm"
    earlier: set[Path] = set()
    before = _name(name)
    if before and AFFINITY not in os.environ:
        with suppress(OSError):
            earlier = set(TASKS.iterdir())
            name.write_text(MARK, encoding="ascii")
    if not earlier:
        yield
        return
    try:
        yield
    finally:
        name.write_text(before, encoding="utf-8", errors="replace")
    _bind([task for task in TASKS.iterdir() if task not in earlier])


def _name(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    return ""  # the thread has ended


def _bind(started: Sequence[Path]) -> None:
    """Bind marked threads, if there are as many as processors."""
    if sys.platform != "linux":
        return
    marked = sorted(int(task.name) for task in started if _name(task / "comm") == MARK)
    allowed = sorted(PROCESSORS)
    if os.environ.get(OPENMP, "false").lower() not in ("", "false"):
        allowed = list(range(os.sysconf("SC_NPROCESSORS_ONLN")))  # no others are known any more
    if len(marked) == len(allowed) > 1:
        for task, processor in zip(marked, allowed, strict=True):
            with suppress(OSError):  # the thread has ended, or that processor is not there
                os.sched_setaffinity(task, {processor})


def share_arena() -> None:
    """Let all new threads allocate from one arena: glibc reserves 64 MiB of addresses for each."""
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such call
        ctypes.CDLL(None).mallopt(ARENA_MAX, 1)
