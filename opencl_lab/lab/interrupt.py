"""Ctrl-C while modules are imported, and other signals for it; nothing but the standard library."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

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


@contextmanager
def interrupt_at_termination() -> Iterator[None]:
    """Take SIGTERM, by which batch schedulers and CI end a process, for Ctrl-C; SIGHUP as well.

    A terminal that is closed sends the latter. Only the first one counts, as some send it twice.
    It waits for the end of a call into a driver, which may hang, so this is for what leaves such
    calls to other processes, or would leave large files behind.
    """
    taken: list[signal.Signals] = []

    def interrupt(*signal_and_frame: Any) -> NoReturn:
        for number in taken:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # and not as under nohup
                    taken.append(number)
                    signal.signal(number, interrupt)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
