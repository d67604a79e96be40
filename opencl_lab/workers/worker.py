"""The parent's side of workers: starting one, sending requests, killing it, how it ended."""

from __future__ import annotations

import math
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing import spawn
from typing import Any

from opencl_lab.core.early import undo
from opencl_lab.core.errors import LaunchError
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.workers.link import Ended, Frames, Link, pack
from opencl_lab.workers.serving import KILL, LOCALHOST, PORT, SECRET_BYTES, Failed

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
sys.path[:] = sys.argv[2:]
from opencl_lab.workers.serving import main
main(sys.argv[1])
"""
POLL_SECONDS = 0.5
CONNECT_SECONDS = 60.0  # for a process to start and to connect
GRACE_SECONDS = 5.0  # for a process to end after its link has
LEAST_PRIORITY = 19
ENDED_BY_OTHERS = ("SIGKILL", "SIGTERM")
"""Signals that no driver sends; the system does where memory is short."""


class Died(Exception):
    """A worker has ended.

    `code` is `subprocess.Popen.returncode`, None if it only closed its link, and `said` is the
    last line that it printed.
    """

    def __init__(self, code: int | None, said: str):
        self.code, self.said = code, said
        super().__init__(f"{self.how} ({said[:160]})" if said else self.how)

    @property
    def signal_name(self) -> str:
        """The name of the signal that ended it, such as SIGSEGV; empty without one."""
        if self.code is None or self.code >= 0:
            return ""
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"signal {-self.code}"

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.code is None:
            return "it closed its connection"
        if self.code >= 0:
            return f"exit status {self.code}"
        return f"{self.signal_name}, signal {-self.code} ({signal.strsignal(-self.code)})"


def opening(target: str, *arguments: Any) -> Frames:
    """Return the first message to a worker: a ``module:name`` to call, and its arguments.

    Errors of pickling the arguments are raised here.
    """
    head, *buffers = pack(arguments)
    preparation = None
    if b"__main__" in bytes(head):
        preparation = spawn.get_preparation_data("worker")
        preparation.pop("authkey", None)  # a secret of multiprocessing, which is not needed
    return pack((preparation, target, head, [pickle.PickleBuffer(item) for item in buffers]))


def command(address: str) -> list[str]:
    """Return the command of a process that serves at a socket; see `serving.main`."""
    search = map(os.path.abspath, sys.path)  # so that the same modules can be imported there
    return [sys.executable, "-c", START, address, *search]


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the leader of a process group and all processes of the group; Windows has no groups."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, KILL)
        else:
            process.kill()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the leader of a process group and all processes of the group; wait for its end.

    `Popen.wait` is not used: Ctrl-C during `Popen.poll` may leave its lock taken, and it would wait
    forever.
    """
    kill_group(process)
    if process.returncode is None:
        if not hasattr(os, "killpg"):
            process.wait()
            return
        status = int(KILL)
        with suppress(ChildProcessError):  # poll() may have reaped it already
            _, status = os.waitpid(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)


def last_line(printed: Any, *words: str) -> str:
    """Return the last line of a file that contains one of `words`, or else the last line."""
    printed.seek(0)
    lines = [line.strip() for line in printed.read().decode(errors="replace").split("\n")]
    lines = [line for line in lines if line]
    telling = [line for line in lines if any(word in line.lower() for word in words)]
    return next(reversed(telling or lines), "")


def _at_pair(given: Mapping[str, Any]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process that inherits a socket; return it and the other end."""
    ours, theirs = socket.socketpair()
    with ExitStack() as failing, theirs:
        failing.enter_context(ours)
        number = theirs.fileno()
        process = subprocess.Popen(
            command(str(number)), stdin=subprocess.DEVNULL, pass_fds=[number], **given
        )
        failing.pop_all()
    return process, ours


def _at_port(given: Mapping[str, Any]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Do the same on Windows, where none is inherited: it connects to a port of this machine.

    Others could connect, too, and what they send would be unpickled. So the process first sends a
    secret, which it gets as its standard input.
    """
    secret, deadline = secrets.token_bytes(SECRET_BYTES), time.monotonic() + CONNECT_SECONDS
    with socket.create_server((LOCALHOST, 0)) as server:
        address = f"{PORT}{server.getsockname()[1]}"
        process = subprocess.Popen(command(address), stdin=subprocess.PIPE, **given)
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(secret)
            server.settimeout(POLL_SECONDS)
            while time.monotonic() < deadline and process.poll() is None:
                with suppress(OSError):  # a timeout, or another process
                    connection, _ = server.accept()
                    connection.settimeout(POLL_SECONDS)
                    with connection.makefile("rb") as file:
                        sent = file.read(SECRET_BYTES)
                    if secrets.compare_digest(sent, secret):
                        return process, connection
                    connection.close()
            return process, socket.socket()  # as if closed: its death is reported as any other
        except BaseException:
            end(process)
            raise


class Worker(Link):
    """A process in its own session; `kill` it at the end.

    It inherits no stream: its output goes to a file, whose last line is reported if it dies, and
    its input is empty. The message from `opening` is answered like a request. The process has the
    variables of `environment` in addition to ours, and `nice` is added to its niceness.
    `LaunchError` is raised if it cannot be started; its later failures are raised where an answer
    is received.
    """

    def __init__(
        self, opening: Frames, environment: Mapping[str, str] | None = None, nice: int = 0
    ):
        with ExitStack() as failing:
            try:
                self._printed = failing.enter_context(tempfile.TemporaryFile())
                given: dict[str, Any] = {
                    "env": {**os.environ, **(environment or {})},
                    "stdout": self._printed,
                    "stderr": subprocess.STDOUT,
                    "start_new_session": True,
                }
                with on_all_processors():
                    start = _at_pair if hasattr(socket, "AF_UNIX") else _at_port
                    self.process, connection = start(given)
                undo[self.process] = partial(end, self.process)  # before its files are removed
                super().__init__(failing.enter_context(connection))
            except OSError as error:
                raise LaunchError(f"cannot start {sys.executable or 'Python'}: {error}") from error
            failing.pop_all()  # closed by `kill`
        if nice and sys.platform != "win32":
            priority = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, LEAST_PRIORITY)
            with suppress(OSError):  # a sandbox may refuse it
                os.setpriority(os.PRIO_PROCESS, self.process.pid, priority)
        with suppress(Ended):
            self.write(opening)

    def send(self, method: str, *arguments: Any) -> None:
        """Send a request; if the worker has died, `receive` raises that."""
        frames = pack((method, arguments))
        with suppress(Ended):
            self.write(frames)

    def receive(self, deadline: float = math.inf) -> tuple[str, Any]:
        """Return the next message: ``said`` and a progress report, or ``done`` and a result.

        Raises `Failed` if the request raised an error, `Died` if the worker has ended, and
        TimeoutError at the deadline.
        """
        try:
            kind, value = self.get(deadline)
        except TimeoutError:
            raise
        except Ended:
            raise self._death() from None
        except Exception as error:  # a process with corrupted memory may send anything
            self.close()  # the next answer would begin within this one
            reason = f"its answer cannot be read: {type(error).__name__}: {error}"
            raise Failed(reason) from error
        if kind == "failed":
            raise value
        return kind, value

    def answer(self, deadline: float = math.inf) -> Any:
        """Return the result of the current request, ignoring progress reports."""
        while True:
            kind, value = self.receive(deadline)
            if kind == "done":
                return value

    def stop(self) -> None:
        """Kill it and all processes that it has started; `receive` raises `Died` then."""
        kill_group(self.process)

    def kill(self) -> None:
        """Kill it and all processes that it has started, and wait for its end."""
        if self._printed.closed:  # it was killed before, and its process id may be reused
            return
        end(self.process)
        undo.pop(self.process, None)
        self._printed.close()
        self.close()

    def _death(self) -> Died:
        if self._printed.closed:
            return Died(self.process.returncode, "")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE_SECONDS)
        said = ""
        with suppress(ValueError):  # another thread may have closed the file
            said = last_line(self._printed)
        return Died(self.process.returncode, said)
