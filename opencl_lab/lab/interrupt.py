"""Handling of Ctrl-C during imports, and of SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from opencl_lab.core.early import interrupted


@contextmanager
def exit_at_interrupt() -> Iterator[None]:
    """While modules are imported, end the process at Ctrl-C without cleaning up.

    A `KeyboardInterrupt` can get lost during imports: NumPy, for example, catches it.
    """
    before = signal.getsignal(signal.SIGINT)
    main_thread = threading.current_thread() is threading.main_thread()
    # The parent process may have set Ctrl-C to be ignored.
    if not main_thread or before not in (signal.default_int_handler, interrupted):
        yield
        return
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def interrupt_at_termination() -> Iterator[None]:
    """Handle SIGTERM, from batch schedulers and CI, and SIGHUP, from closed terminals, as Ctrl-C.

    Only the first signal counts, as some senders repeat it. It takes effect after a running call
    into a driver, which may hang. So this is for commands that leave such calls to workers, or that
    would leave large files behind.
    """
    taken: list[signal.Signals] = []

    def interrupt(*signal_and_frame: Any) -> NoReturn:
        for number in taken:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
                if signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
                    taken.append(number)
                    signal.signal(number, interrupt)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
