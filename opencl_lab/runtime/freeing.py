"""Freeing unused memory: when it runs out, and when the user asks for it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import pyopencl as cl

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.memory import why_no_room

LOCK_SECONDS = 2.0
"""Longest wait for threads that use what might be freed; they may be waiting for this one."""

LEAST_ASKED = 1 << 20
"""Bytes from which it is asked whether a limit leaves them, which takes a microsecond."""

T = TypeVar("T")

_when_freeing: list[Callable[[float], None]] = []
_lock = threading.Lock()


def call_when_freeing(function: Callable[[float], None]) -> None:
    """Register a function that frees what it can.

    Its argument is the most seconds to wait for other threads; -1 means without limit.
    """
    with _lock:
        _when_freeing.append(function)


def free_unused(seconds: float = -1) -> None:
    """Free everything on all devices that is held for further calls and not in use."""
    with _lock:
        functions = list(_when_freeing)
    for function in functions:
        function(seconds)
    # glibc retains what CPU runtimes have freed, often several times what is in use.
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such call
        ctypes.CDLL(None).malloc_trim(0)


def with_room(run: Callable[[], T], host_bytes: int = 0) -> T:
    """Return what `run` returns; if memory runs out, free what is not in use and run it again.

    `host_bytes` is how much memory of the host it takes. Where a limit leaves less, the driver is
    not asked, and it raises `LaunchError`.
    """
    asks = host_bytes >= LEAST_ASKED
    if not (asks and why_no_room(host_bytes)):
        try:
            return run()
        except (cl.MemoryError, MemoryError):
            pass  # retried outside, where the error's frames hold no memory
    free_unused(LOCK_SECONDS)
    lack = why_no_room(host_bytes) if asks else None
    if lack:
        raise LaunchError(f"{lack}; raise the limit, or take a smaller problem")
    return run()


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn a failed allocation outside of a launch into a `LaunchError`."""
    try:
        yield
    except cl.MemoryError as error:
        raise LaunchError(f"the device ran out of memory: {error}") from error
