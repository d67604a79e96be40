"""What not every system has, and what is done without it.

The library is developed on Linux. Elsewhere modules such as `fcntl` and functions such as
`os.register_at_fork` may be missing; what uses them is here, or looks for them with `hasattr`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

OFF = ("off", "0", "no", "false")
HAS_OWNERS = hasattr(os, "geteuid")
"""Whether files have an owner and a mode that say who may write to them, unlike on Windows."""


def user() -> int:
    """Return the number of this process's user; 0 without such numbers, as for every file then."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def switched_off(variable: str) -> bool:
    """Return whether an environment variable switches off what is on without it."""
    return os.environ.get(variable, "").strip().lower() in OFF


def largest_file() -> float:
    """Return how many bytes a file of this process may have; infinity without a limit."""
    if sys.platform != "win32":
        with suppress(ImportError, OSError):
            import resource

            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
            return math.inf if limit == resource.RLIM_INFINITY else float(limit)
    return math.inf


def after_fork(function: Callable[[], None]) -> None:
    """Call a function in each process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def file_lock(file: IO[Any]) -> Iterator[None]:
        """Hold the lock of an open file, for which other processes and threads wait."""
        locked = False
        while not locked:
            with suppress(OSError):  # raised after ten seconds
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                locked = True
        try:
            yield
        finally:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:

    @contextmanager
    def file_lock(file: IO[Any]) -> Iterator[None]:
        """Hold the lock of an open file, for which other processes and threads wait."""
        with suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield
