"""A process beside the tuner: how it is started, spoken with, ended, and what its end means."""

from __future__ import annotations

import json
import math
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing import spawn
from typing import Any, Literal

from opencl_lab.core import errors
from opencl_lab.core.errors import InvalidProblem, LaunchError, OclabError
from opencl_lab.core.space import Config
from opencl_lab.drivers.processes import end, signal_name
from opencl_lab.lab.tuning.task import TuningTask

__all__ = [
    "BUILD_FACTOR",
    "GENEROUS",
    "HOST_SECONDS",
    "LEAST_BUILD",
    "LONGEST_ALARM",
    "Died",
    "Process",
    "failure",
    "longest_phase",
    "no_reference",
    "opening",
]

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
role, sys.path[:] = sys.argv[1], sys.argv[2:]
from opencl_lab.lab.tuning.worker import main
main(role)
"""
GENEROUS = 60.0  # seconds for anything before the first measurement
HOST_SECONDS = 600.0  # inputs and expected results; no configuration is to blame for them
LEAST_BUILD, BUILD_FACTOR = 10.0, 10.0  # of the usual time
LONGEST_WAIT = 3600.0  # that a selector takes for sure
LONGEST_ALARM = 1e6
GRACE = 5.0
PHASE_SHARE = 1 / 3
"""Of the time limit, for one phase of a configuration: what needs more cannot be tried in time."""


class Died(Exception):
    """The process ended, or was ended because it took too long."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


class Process:
    """A running process in a process group of its own.

    Parameters
    ----------
    role : str
        ``trial`` checks and times, ``builder`` builds; see `opencl_lab.lab.tuning.worker`.
    message : bytes
        What it reads first: of `opening`.
    """

    def __init__(self, role: Literal["trial", "builder"], message: bytes):
        self._unread = b""
        self._lines: list[bytes] = []
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        search = map(os.path.abspath, sys.path)  # what imports here must import there
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, role, *search],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise LaunchError(f"cannot start {sys.executable or 'Python'}: {error}") from error
        self.send(message)

    def send(self, data: bytes) -> None:
        """Write to its stdin; whether it still reads shows when it is listened to."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return its next message, None at the deadline.

        Raises
        ------
        EOFError
            When it has ended.
        """
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not self._lines:
                left = deadline - time.monotonic()
                if not selector.select(min(max(0.0, left), LONGEST_WAIT)):
                    if left <= LONGEST_WAIT:
                        return None
                    continue
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                if not data:
                    raise EOFError
                *lines, self._unread = (self._unread + data).split(b"\n")
                self._lines += lines
        message: dict[str, Any] = json.loads(self._lines.pop(0))
        return message

    def last_words(self) -> str:
        """Say how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE)
        code = self.process.returncode
        if code is None:
            return "it closed its output"
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").split("\n")
        line = next((line.strip() for line in reversed(said) if line.strip()), "")
        how = signal_name(-code) if code < 0 else f"exit status {code}"
        return how + (f" ({line[:160]})" if line else "")

    def stop(self) -> None:
        """Kill it and whatever it has started; whoever listens to it hears that it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End it and whatever it has started."""
        end(self.process, group=True)
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            with suppress(OSError):  # unsent bytes, which nobody waits for any more
                stream.close()  # type: ignore[union-attr]


def no_reference(first: Config, reason: str) -> LaunchError:
    """Return the error that nothing can be compared, as the first configuration does not run."""
    return LaunchError(
        f"the first configuration {first}, with which all others are compared, does not run: "
        f"{reason}; put one first that runs, or give its expected result (--check FILE), or more "
        "time (--timeout, --time-limit)"
    )


def longest_phase(timeout: float | None, time_limit: float | None) -> float:
    """Return the seconds that no phase of a configuration may exceed on the device.

    Parameters
    ----------
    timeout, time_limit : float or None
        As `opencl_lab.tune` takes them.
    """
    share = math.inf if time_limit is None else max(GRACE, PHASE_SHARE * time_limit)
    return share if timeout is None else min(share, timeout)


def failure(message: dict[str, Any] | None) -> OclabError:
    """Return the error that a worker reported before it was ready."""
    if message is None:
        reason = f"no answer within {HOST_SECONDS:g} s"
    elif message["kind"] in errors.__all__:  # what is wrong with the task, not with the worker
        reported: OclabError = getattr(errors, message["kind"])(message["failed"])
        vars(reported).update(message["details"])
        return reported
    else:
        reason = message["failed"]
    return LaunchError(f"the tuner's worker could not start: {reason}")


def opening(task: TuningTask) -> bytes:
    """Return what a new worker reads first."""
    try:
        content = pickle.dumps(task)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidProblem(
            f"{task.operation.name} cannot be tuned in a process of its own: {error}; everything "
            "it is made of must be importable from a module"
        ) from error
    preparation = None
    if b"__main__" in content:
        preparation = spawn.get_preparation_data("worker")
        preparation.pop("authkey", None)  # a secret of multiprocessing, of no use there
    return pickle.dumps(preparation) + content
