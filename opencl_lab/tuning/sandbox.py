"""The tuner's side of the worker process: time limits, crashes, and a new worker after each."""

from __future__ import annotations

import json
import math
import os
import pickle
import selectors
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime, timezone
from multiprocessing import spawn
from statistics import median
from typing import Any

from opencl_lab import errors
from opencl_lab.errors import InvalidProblem, LaunchError, OclabError
from opencl_lab.processes import end, signal_name
from opencl_lab.space import Config
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.task import TuningTask

__all__ = ["Sandbox"]

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
sys.path[:] = sys.argv[1:]
from opencl_lab.tuning.worker import main
main()
"""
GENEROUS = 60.0  # seconds for anything before the first measurement
HOST_SECONDS = 600.0  # inputs and expected results; no configuration is to blame for them
LEAST_BUILD, LEAST_RUN = 10.0, 2.0
BUILD_FACTOR, RUN_FACTOR = 10.0, 10.0
LONGEST_WAIT = 3600.0  # that a selector takes for sure
GRACE = 5.0


class _Died(Exception):
    """The worker ended, or was ended because it took too long."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


class _Worker:
    """A running worker process in a process group of its own."""

    def __init__(self, message: bytes):
        self._unread = b""
        self._lines: list[bytes] = []
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        search = map(os.path.abspath, sys.path)  # what imports here must import there
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, *search],
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

    def kill(self) -> None:
        """End it and whatever it has started."""
        end(self.process, group=True)
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            with suppress(OSError):  # unsent bytes, which nobody waits for any more
                stream.close()  # type: ignore[union-attr]


class Sandbox:
    """Evaluates configurations of a task in a process that may die of them.

    A crash, a hang, an abort or the end of memory costs that one configuration:
    the worker is killed with all it has started, and the next one takes over.

    Parameters
    ----------
    task : TuningTask
    timeout : float, optional
        Seconds for each phase of a configuration. Without it the limits are
        generous at first; then a build may take ten times as long as usual, and
        runs ten times as long as those of the best so far.

    Raises
    ------
    InvalidProblem
        If the operation cannot be sent to another process.
    """

    def __init__(self, task: TuningTask, timeout: float | None = None):
        self._timeout = timeout
        self._message = _opening(task)
        self._first: Config | None = None
        if task.operation.reference_is_first:  # the worker runs it before anything is asked
            self._first = task.algorithm.default_config(task.problem, task.device)
        self._worker: _Worker | None = None
        self._builds: list[float] = []
        self.restarts = 0

    def evaluate(self, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        """Check and time a configuration; None if the tuner's own time ran out meanwhile."""
        return self._ask("evaluate", config, best_ms, seconds)

    def again(self, config: Config, seconds: float) -> Evaluation | None:
        """Time a configuration a few times more, and check it if this worker has not yet."""
        return self._ask("again", config, math.inf, seconds)

    def close(self) -> None:
        """End the worker, also in the middle of a run; it has nothing to save."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _ask(self, do: str, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        worker = self._ready()
        begin = time.monotonic()
        request = {
            "do": do,
            "config": dict(config),
            "best_ms": best_ms if math.isfinite(best_ms) else None,
            "alarm": min(3 * (self._limit("building", best_ms) + HOST_SECONDS), 1e6),
        }
        worker.send(json.dumps(request).encode() + b"\n")
        try:
            evaluation = self._listen(worker, best_ms, begin + seconds)
        except _Died as death:
            self.close()
            spent = (time.monotonic() - begin) * 1e3
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            status: Any = death.status
            return Evaluation(config, status, str(death), build_ms=spent, timestamp=now)
        except BaseException:
            self.close()  # an answer is under way that nobody will wait for
            raise
        if evaluation is None:
            self.close()
        elif evaluation.status == "correct" and evaluation.build_ms:
            self._builds.append(evaluation.build_ms / 1e3)
        elif evaluation.status == "correctness" and "outside" in evaluation.reason:
            self.close()  # nobody knows what else it has overwritten
        return evaluation

    def _listen(self, worker: _Worker, best_ms: float, end: float) -> Evaluation | None:
        """Follow a configuration through its phases, each with its time limit."""
        phase, limit = "starting", GENEROUS
        deadline = time.monotonic() + limit
        while True:
            try:
                message = worker.receive(min(deadline, end + GRACE))
            except EOFError:
                raise _Died(
                    "runtime", f"the process died: {worker.last_words()}, while {phase}"
                ) from None
            if message is None:
                if time.monotonic() < deadline:
                    return None
                raise _Died("timeout", f"no end within {limit:.3g} s, while {phase}")
            if "done" in message:
                return Evaluation.from_dict(message["done"])
            phase = message["phase"]
            limit = self._limit(phase, best_ms)
            deadline = time.monotonic() + limit

    def _limit(self, phase: str, best_ms: float) -> float:
        """Return how many seconds a phase may take."""
        if phase == "checking":
            return HOST_SECONDS
        if self._timeout is not None:
            return self._timeout
        run = RUN_FACTOR * best_ms / 1e3
        if phase == "timing":
            # Of short runs many go into one phase, of long ones each is one.
            return max(LEAST_RUN, run) if math.isfinite(run) else GENEROUS
        if not self._builds or not math.isfinite(run):
            return GENEROUS
        return run + max(LEAST_BUILD, BUILD_FACTOR * median(self._builds))

    def _ready(self) -> _Worker:
        """Return a worker that waits for requests."""
        if self._worker is not None and self._worker.process.poll() is None:
            return self._worker
        self.close()  # if it has died since its last answer, no configuration is to blame
        self._worker = worker = _Worker(self._message)
        self.restarts += 1
        try:
            message = worker.receive(time.monotonic() + HOST_SECONDS)
        except EOFError:
            reason = worker.last_words()
            self.close()
            if self._first is not None:
                raise LaunchError(
                    f"the first configuration {self._first} crashed ({reason}): put one first that "
                    "runs, or give its expected result (--check FILE)"
                ) from None
            raise LaunchError(
                f"the tuner's worker could not start: the process died: {reason}"
            ) from None
        except BaseException:
            self.close()
            raise
        if message is None or "failed" in message:
            self.close()
            raise _failure(message)
        return worker


def _failure(message: dict[str, Any] | None) -> OclabError:
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


def _opening(task: TuningTask) -> bytes:
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
