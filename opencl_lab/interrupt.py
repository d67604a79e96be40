"""Ctrl-C while modules are imported; nothing but the standard library is needed for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["exit_at_interrupt", "interrupted"]

STATUS = 130


def interrupted(*signal_and_frame: Any) -> NoReturn:
    """Say that the process was interrupted, and end it."""
    os.write(2, b"oclab: interrupted\n")
    os._exit(STATUS)


@contextmanager
def exit_at_interrupt() -> Iterator[None]:
    """End the process at Ctrl-C without any cleaning up, for the time of imports.

    A `KeyboardInterrupt` there is lost now and then: NumPy, for one, catches it.
    """
    before = signal.getsignal(signal.SIGINT)
    main_thread = threading.current_thread() is threading.main_thread()
    # Whoever started us may have Ctrl-C ignored.
    if not main_thread or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
