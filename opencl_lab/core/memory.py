"""How much memory there is, and how much this process may still take.

Without a limit nothing is refused here: systems give out more memory than they have. Under a limit
(``ulimit -v``, a container, a batch job) drivers of CPUs do not survive that they get none: PoCL
crashes, or waits for ever. So who needs much memory asks first. MPICH does not survive
a shared memory that is too small, either.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.core.wording import size_text

GROUPS = Path("/proc/self/cgroup")
"""The control groups of this process."""
GROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files with the memory limit of a container, of both versions of control groups."""
USED_NAMES = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
"""The files beside them that say how much the group uses."""
CACHED = ("inactive_file", "active_file", "slab_reclaimable")
"""What a group uses and gives back when it needs memory."""
UNLIMITED = 1 << 60
"""The first version writes such a number where there is no limit."""
MEMORY, SIZES = Path("/proc/meminfo"), Path("/proc/self/statm")
RESERVE = 8 << 20
"""Bytes that stay free for all that is small."""
SHARE_ASKED = 1 / 256
"""The part of a group's limit below which nobody reads how much it uses, which takes 50 us."""
SHARED = Path("/dev/shm")
"""Where MPI libraries on Linux share memory; containers may have little of it."""
MPICH_BYTES, MPICH_LEAST = 6 << 20, 5 << 18
"""Bytes that MPICH 5.0 takes there for each rank, and at least, where it finds little."""
MPICH_LITTLE, MPICH_ENOUGH = 16 << 20, 18 << 20
"""What it takes for little is less than this; from there to the second number it crashes."""
MPICH_RANKS = "MPI_LOCALNRANKS"
"""The variable by which its launcher tells the number of ranks on this node."""


@cache
def group_limits() -> tuple[tuple[Path, int], ...]:
    """Return the files that limit the groups of this process, with their limits."""
    folders = [limit.parent for limit in GROUP_LIMITS]
    with suppress(OSError, ValueError):
        for line in GROUPS.read_text(encoding="utf-8", errors="replace").splitlines():
            _, kinds, path = line.split(":", 2)
            root = folders[1 if "memory" in kinds.split(",") else 0]
            inner = Path(path.lstrip("/"))
            if path != "/" and ".." not in inner.parts and kinds in ("", *kinds.split(",")):
                folders += [root / one for one in (inner, *inner.parents)]
    found = {}
    for folder in folders:
        for name in USED_NAMES:
            with suppress(OSError, ValueError):  # such as "max"
                limit = int((folder / name).read_text())
                if limit < UNLIMITED:
                    found[folder / name] = limit
    return tuple(found.items())


def host_memory() -> float:
    """Return the bytes of memory of this machine or container; infinity if unknown."""
    found = math.inf
    with suppress(OSError, ValueError):
        if hasattr(os, "sysconf"):
            found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([found, *(limit for _, limit in group_limits())])


def group_left() -> float:
    """Return the bytes that the groups of this process may still use; infinity without a limit."""
    left = math.inf
    for path, limit in group_limits():
        with suppress(OSError, ValueError):
            used = int(path.with_name(USED_NAMES[path.name]).read_text())
            fields = _fields(path.with_name("memory.stat"))
            cached = (fields.get(f"total_{name}", fields.get(name, 0)) for name in CACHED)
            left = min(left, limit - used + sum(cached))
    return left


def process_left() -> float:
    """Return the bytes that this process may still map (``ulimit -v``, ``-d``); else infinity."""
    left = math.inf
    if sys.platform != "win32":
        with suppress(ImportError, OSError, ValueError):
            import resource

            for kind, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
                limit = resource.getrlimit(kind)[0]
                if limit != resource.RLIM_INFINITY:
                    pages = int(SIZES.read_text(encoding="ascii").split()[place])
                    left = min(left, limit - pages * resource.getpagesize())
    return left


def memory_left() -> float:
    """Return the bytes that this process may still take; infinity without a limit."""
    return min(process_left(), group_left())


def why_no_room(nbytes: int) -> str | None:
    """Return why this process cannot take so many bytes more, or None."""
    left = process_left() - RESERVE
    by = "the limit of this process (ulimit -v)"
    if nbytes <= left and any(nbytes >= limit * SHARE_ASKED for _, limit in group_limits()):
        by = "the limit of its control group, such as a container's,"
        left = group_left() + _fields(MEMORY).get("SwapFree:", 0) * 1024
    if nbytes <= left:
        return None
    return f"{size_text(nbytes)} more memory is needed, and {by} leaves {size_text(max(left, 0))}"


def check_shared() -> None:
    """Refuse to start MPICH where it has too little shared memory, and would end the process."""
    ranks = os.environ.get(MPICH_RANKS, "")
    if not ranks.isdecimal() or "mpi4py.MPI" in sys.modules:
        return
    with suppress(OSError):
        free = shutil.disk_usage(SHARED).free
        needs = int(ranks) * MPICH_LEAST
        if free >= MPICH_LITTLE:
            needs = max(int(ranks) * MPICH_BYTES, MPICH_ENOUGH)
        if free < needs:
            raise ReferenceUnavailable(
                f"MPI needs {size_text(needs)} of {SHARED} for its ranks on this node, and "
                f"{size_text(free)} are free there; enlarge it (docker run --shm-size), remove "
                "files of killed ranks, or take fewer ranks"
            )


def _fields(file: Path) -> dict[str, int]:
    """Return the numbers of a file that has a name and a number in each line."""
    with suppress(OSError, ValueError):
        rows = map(str.split, file.read_text(encoding="ascii").splitlines())
        return {row[0]: int(row[1]) for row in rows}
    return {}
