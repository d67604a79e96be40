"""What modules do about signals that end a command: let them wait, and undo what they would leave.

`opencl_lab.core.early` has the handlers.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from opencl_lab.core.early import SIGNALS, command, undo
from opencl_lab.core.trust import temporary_place

T = TypeVar("T")


@contextmanager
def exit_at_interrupt() -> Iterator[None]:
    """While modules are imported, let a signal end the command at once.

    A `KeyboardInterrupt` can get lost during imports: NumPy, for example, catches it.
    """
    before, command.raises = command.raises, False
    try:
        yield
    finally:
        command.raises = before


@contextmanager
def held(late: list[int] | None = None) -> Iterator[None]:
    """Let signals wait during work that must be completed; threads never get them.

    They are handled afterwards, or only added to `late`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = [] if late is None else late
    numbers = SIGNALS if command.installed else SIGNALS[:1]  # others are for their own handlers
    before = {number: signal.getsignal(number) for number in numbers}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    command.held += 1
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        command.held -= 1
        for number in reversed(handlers):  # Ctrl-C last, whose handler may raise
            signal.signal(number, handlers[number])
        for number in dict.fromkeys(came) if late is None else ():
            handlers[signal.Signals(number)](number, None)


@contextmanager
def released(make: Callable[[], T], release: Callable[[T], object]) -> Iterator[T]:
    """Yield what `make` returns, and `release` it, whichever way the command ends."""
    key = object()
    try:
        with held():
            made = make()
            undo[key] = partial(release, made)
        yield made
    finally:
        with held():
            if key in undo:
                release(made)
                del undo[key]  # now: a process that ends at once meanwhile has it to do, too


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new temporary folder, which only this user can enter or replace, and remove it."""
    make = partial(tempfile.mkdtemp, prefix=prefix, dir=parent or temporary_place())
    with released(make, partial(shutil.rmtree, ignore_errors=True)) as folder:
        yield Path(folder)
