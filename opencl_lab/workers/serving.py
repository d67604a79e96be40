"""The worker's side: a process that answers the requests of its parent.

It first makes its handler: `target`, called with the arguments of the opening message and `say`,
with which the handler reports its progress. Methods of the handler answer the requests.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from opencl_lab.core.early import SIGNALS, undo_all
from opencl_lab.core.errors import OclabError
from opencl_lab.workers.link import Ended, Link

POLL_SECONDS = 60.0  # interval of polling the other end
LOCALHOST, PORT, SECRET_BYTES = "127.0.0.1", "port:", 32
ORPHAN_SECONDS = 3600
"""A process ends if it could not poll for so long because native code blocks its threads."""

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""What ends a process at once."""


class Failed(Exception):
    """A request raised an error; the worker can answer further requests.

    `reason` has the class and the message of the error; `error` is the error, if it is an
    OclabError.
    """

    def __init__(self, reason: str, error: OclabError | None = None):
        super().__init__(reason, error)
        self.reason, self.error = reason, error

    def __str__(self) -> str:
        return self.reason


def find(target: str) -> Any:
    """Return the object that ``module:name`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _isolate() -> None:
    """Ignore signals that end commands, write no core dumps, be the first to go without memory."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _leave() -> NoReturn:
    """End this process at once, with all processes that it has started."""
    undo_all()
    if sys.platform != "win32" and hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, KILL)
    os._exit(1)


def _end_with(link: Link) -> None:
    """Leave as soon as the other end is closed, even during a request."""
    _set_alarm()
    while not link.ended(POLL_SECONDS):
        _set_alarm()
    _leave()


def _set_alarm() -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(ORPHAN_SECONDS)


def _answer(link: Link, work: Callable[..., Any], *arguments: Any) -> bool:
    """Send the result or the error of some work; return whether it succeeded."""
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
    handler: Any = None

    def begin() -> None:
        nonlocal handler
        if preparation is not None:  # the user's script defines classes of the arguments
            from multiprocessing import spawn

            spawn.prepare(preparation)
        given = pickle.loads(arguments, buffers=buffers)
        handler = find(target)(*given, lambda word: link.put(("said", word)))

    def ask(method: str, given: tuple[Any, ...]) -> Any:
        return getattr(handler, method)(*given)

    if _answer(link, begin):
        while (request := link.get()) is not None:
            _answer(link, ask, *request)


def main(address: str) -> None:
    """Serve at a socket, given by its file descriptor if it was inherited, by its path or port.

    At a port, which every process of this machine can reach, the secret from standard input shows
    who this one is.
    """
    _isolate()
    if address.isdigit():
        connection = socket.socket(fileno=int(address))
        connection.set_inheritable(False)
    elif address.startswith(PORT):
        connection = socket.create_connection((LOCALHOST, int(address.removeprefix(PORT))))
        connection.sendall(sys.stdin.buffer.read(SECRET_BYTES))
    elif hasattr(socket, "AF_UNIX"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    else:
        raise OSError(f"no Unix sockets, so nothing can be reached at {address}")
    link = Link(connection)
    threading.Thread(target=_end_with, args=(link,), daemon=True).start()
    try:
        _serve(link)
    except Ended:
        _leave()
