"""The parent's side of workers: starting one, sending requests, killing it, how it ended."""

from __future__ import annotations

import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from multiprocessing import spawn
from typing import Any

from opencl_lab.core.errors import LaunchError
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.workers.link import Ended, Frames, Link, pack
from opencl_lab.workers.serving import Failed

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
sys.path[:] = sys.argv[2:]
from opencl_lab.workers.serving import main
main(sys.argv[1])
"""
GRACE_SECONDS = 5.0  # for a process to end after its link has
LEAST_PRIORITY = 19


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


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the leader of a process group and all processes of the group; wait for its end.

    `Popen.wait` is not used: Ctrl-C during `Popen.poll` may leave its lock taken, and it would wait
    forever.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        status = int(signal.SIGKILL)
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
                ours, theirs = socket.socketpair()
                super().__init__(failing.enter_context(ours))
                with theirs, on_all_processors():
                    self.process = subprocess.Popen(
                        command(str(theirs.fileno())),
                        env={**os.environ, **(environment or {})},
                        stdin=subprocess.DEVNULL,
                        stdout=self._printed,
                        stderr=subprocess.STDOUT,
                        pass_fds=[theirs.fileno()],
                        start_new_session=True,
                    )
            except OSError as error:
                raise LaunchError(f"cannot start {sys.executable or 'Python'}: {error}") from error
            failing.pop_all()  # closed by `kill`
        if nice:
            priority = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, LEAST_PRIORITY)
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
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill it and all processes that it has started, and wait for its end."""
        if self._printed.closed:  # it was killed before, and its process id may be reused
            return
        end(self.process)
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
