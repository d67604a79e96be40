"""A worker's own side: it isolates itself, and answers until the other end has no more to ask.

What it makes first, its servant, is `target` called with the opening's arguments and `say`, by
which the servant tells what it is about. The methods of the servant answer the requests.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from opencl_lab.core.errors import OclabError
from opencl_lab.lab.workers.link import Ended, Link

POLL_SECONDS = 60.0  # seconds between looks at the other end
ORPHAN_SECONDS = 3600
"""After which a process ends that has not looked, since foreign code lets no other thread run."""

_farewells: list[Callable[[], None]] = []


class Failed(Exception):
    """What was asked for raised an error; the worker may be asked again.

    The `reason` is the class of the error, and what it says; `error` is it, if it is one of ours.
    """

    def __init__(self, reason: str, error: OclabError | None = None):
        super().__init__(reason, error)
        self.reason, self.error = reason, error

    def __str__(self) -> str:
        return self.reason


def find(target: str) -> Any:
    """Return what ``module:name`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def at_hangup(farewell: Callable[[], None]) -> None:
    """Call this before the process ends because the other end is gone."""
    _farewells.append(farewell)


def _isolate() -> None:
    """Arrange how this process may end: as the other end wants, first when memory is short."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _leave() -> NoReturn:
    """End at once, with all that this process has started."""
    for farewell in _farewells:
        farewell()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_with(link: Link) -> None:
    """Leave as soon as the other end is gone, also in the middle of a request."""
    signal.alarm(ORPHAN_SECONDS)
    while not link.ended(POLL_SECONDS):
        signal.alarm(ORPHAN_SECONDS)
    _leave()


def _answer(link: Link, work: Callable[..., Any], *arguments: Any) -> bool:
    """Send what comes of some work; return whether it succeeded."""
    try:
        link.put(("done", work(*arguments)))
    except Ended:
        raise
    except Exception as error:
        ours = error if isinstance(error, OclabError) else None
        link.put(("failed", Failed(f"{type(error).__name__}: {error}", ours)))
        return False
    return True


def _serve(link: Link) -> None:
    """Answer until there are no more requests."""
    preparation, target, arguments, buffers = link.get()
    servant: Any = None

    def begin() -> None:
        nonlocal servant
        if preparation is not None:  # the user's own script defines what the arguments are
            from multiprocessing import spawn

            spawn.prepare(preparation)
        given = pickle.loads(arguments, buffers=buffers)
        servant = find(target)(*given, lambda word: link.put(("said", word)))

    def ask(method: str, given: tuple[Any, ...]) -> Any:
        return getattr(servant, method)(*given)

    if _answer(link, begin):
        while (request := link.get()) is not None:
            _answer(link, ask, *request)


def main(address: str) -> None:
    """Serve at a socket: its number if it was inherited, or its path."""
    _isolate()
    if address.isdigit():
        connection = socket.socket(fileno=int(address))
        connection.set_inheritable(False)
    else:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    link = Link(connection)
    threading.Thread(target=_end_with, args=(link,), daemon=True).start()
    try:
        _serve(link)
    except Ended:
        _leave()
