"""The side that has workers: how one is started, asked, ended, and what its end means."""

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
from contextlib import suppress
from multiprocessing import spawn
from typing import Any

from opencl_lab.core.errors import LaunchError
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.lab.workers.child import Failed
from opencl_lab.lab.workers.link import Ended, Frames, Link, pack

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
sys.path[:] = sys.argv[2:]
from opencl_lab.lab.workers.child import main
main(sys.argv[1])
"""
GRACE = 5.0  # seconds between the end of a link and that of its process
LEAST_PRIORITY = 19


class Died(Exception):
    """A worker ended.

    Attributes
    ----------
    code : int or None
        As `subprocess.Popen.returncode`; None if it only closed its link.
    said : str
        The last line that it printed.
    """

    def __init__(self, code: int | None, said: str):
        self.code, self.said = code, said
        super().__init__(f"{self.how} ({said[:160]})" if said else self.how)

    @property
    def signal_name(self) -> str:
        """The name of the signal that ended it, such as SIGSEGV, or nothing."""
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
    """Return what a worker reads first: what to call, as ``module:name``, and with what.

    Raises
    ------
    pickle.PicklingError, TypeError, AttributeError
        If the arguments cannot be sent.
    """
    head, *buffers = pack(arguments)
    preparation = None
    if b"__main__" in bytes(head):
        preparation = spawn.get_preparation_data("worker")
        preparation.pop("authkey", None)  # a secret of multiprocessing, of no use there
    return pack((preparation, target, head, [pickle.PickleBuffer(item) for item in buffers]))


def command(address: str) -> list[str]:
    """Return the command of a process that serves at a socket; see `child.main`."""
    search = map(os.path.abspath, sys.path)  # what imports here must import there
    return [sys.executable, "-c", START, address, *search]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started, and wait until it has ended.

    Not by `Popen.wait`, which would wait for ever: Ctrl-C in the middle of `Popen.poll` may leave
    its lock taken.

    Parameters
    ----------
    process : subprocess.Popen
        The leader of a process group.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        status = int(signal.SIGKILL)
        with suppress(ChildProcessError):  # that poll() has reaped it already
            _, status = os.waitpid(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)


def last_line(printed: Any, *words: str) -> str:
    """Return the last line of a file that has one of these words, or else the last of all."""
    printed.seek(0)
    lines = [line.strip() for line in printed.read().decode(errors="replace").split("\n")]
    lines = [line for line in lines if line]
    telling = [line for line in lines if any(word in line.lower() for word in words)]
    return next(reversed(telling or lines), "")


class Worker(Link):
    """A process in a session of its own; `kill` it.

    It inherits no stream: what it prints is kept for its last words, and it reads nothing.

    Parameters
    ----------
    opening : Frames
        Of `opening`; it is answered like a request.
    environment : mapping, optional
        Variables that it has in addition to ours.
    nice : int
        How much others go first.

    Raises
    ------
    LaunchError
        If no process can be started. The constructor does not wait for it: whatever fails in it is
        raised by what waits for an answer.
    """

    def __init__(
        self, opening: Frames, environment: Mapping[str, str] | None = None, nice: int = 0
    ):
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        with theirs:
            try:
                with on_all_processors():
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
                self._printed.close()
                self.close()
                raise LaunchError(f"cannot start {sys.executable or 'Python'}: {error}") from error
        if nice:
            priority = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, LEAST_PRIORITY)
            os.setpriority(os.PRIO_PROCESS, self.process.pid, priority)
        with suppress(Ended):
            self.write(opening)

    def send(self, method: str, *arguments: Any) -> None:
        """Make a request; whether it is still read shows when the answer is waited for."""
        frames = pack((method, arguments))
        with suppress(Ended):
            self.write(frames)

    def receive(self, deadline: float = math.inf) -> tuple[str, Any]:
        """Return what comes next: ``said`` and a word, or ``done`` and the value of a request.

        Raises
        ------
        Failed
            If the request raised an error.
        Died
            If the worker ended.
        TimeoutError
            At the deadline.
        """
        try:
            kind, value = self.get(deadline)
        except TimeoutError:
            raise
        except Ended:
            raise self._death() from None
        except Exception as error:  # of a process whose memory is no longer what it was
            reason = f"its answer cannot be read: {type(error).__name__}: {error}"
            raise Failed(reason) from error
        if kind == "failed":
            raise value
        return kind, value

    def answer(self, deadline: float = math.inf) -> Any:
        """Return the value of the request under way, whatever is said meanwhile."""
        while True:
            kind, value = self.receive(deadline)
            if kind == "done":
                return value

    def stop(self) -> None:
        """Kill it and whatever it has started; whoever waits for it hears that it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End it and whatever it has started; it has nothing to save."""
        end(self.process)
        self._printed.close()
        self.close()

    def _death(self) -> Died:
        if self._printed.closed:
            return Died(self.process.returncode, "")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE)
        return Died(self.process.returncode, last_line(self._printed))
