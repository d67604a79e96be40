"""What all distributed operations need of MPI: the communicator, agreement, and ending together.

A rank that fails alone would leave the others in a collective call for ever. So there are two kinds
of errors. What is wrong with the arguments is found before anything is sent, and all ranks raise
the same error. Any other error ends the whole job: its message is printed and `Abort` is called.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from opencl_lab.core.early import INTERRUPTED
from opencl_lab.core.errors import InvalidConfig, OclabError, ReferenceUnavailable
from opencl_lab.core.memory import check_shared

P = ParamSpec("P")
T = TypeVar("T")

DEADLINE = "OCLAB_DEADLINE"
"""The environment variable with the seconds that a distributed call may take."""
GRACE_SECONDS = 2.0
"""From `Abort` to the end of this process, if the MPI library does not end it."""
PRINT_SECONDS = 0.3
"""From the message to `Abort`."""
FAILED = 1
"""Exit status of a job that ended with an error that is not of opencl_lab."""
LATE = 124
"""Exit status at the deadline, as that of `timeout`."""

_depth = threading.local()


class Phases:
    """Where the time of distributed calls goes: ``communication``, ``waiting``; else compute.

    Attributes
    ----------
    seconds : collections.defaultdict of float
    apart : bool
        Whether ranks wait for each other before they communicate, so that waiting is told apart
        from communication. It makes calls slower.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.apart = False

    @contextmanager
    def communication(self, comm: Any) -> Iterator[None]:
        """Count the time within the context."""
        begin = time.perf_counter()
        if self.apart:
            comm.Barrier()
            now = time.perf_counter()
            self.seconds["waiting"] += now - begin
            begin = now
        try:
            yield
        finally:
            self.seconds["communication"] += time.perf_counter() - begin


phases = Phases()
"""Those of this rank, since it began or someone cleared them."""


def mpi() -> Any:
    """Return `mpi4py.MPI`, which starts MPI at its first import."""
    check_shared()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ReferenceUnavailable(
            f"distributed calls need mpi4py and an MPI library ({error}); pip install mpi4py mpich"
        ) from error
    return MPI


@cache
def _near_key() -> int:
    return int(mpi().Comm.Create_keyval())


def near_ranks(comm: Any) -> tuple[int, int]:
    """Return the number of this rank among those of its node, and how many these are.

    All ranks find it out together, once for each communicator.
    """
    found: tuple[int, int] | None = comm.Get_attr(_near_key())
    if found is None:
        near = comm.Split_type(mpi().COMM_TYPE_SHARED)
        found = near.rank, near.size
        near.Free()
        comm.Set_attr(_near_key(), found)
    return found


def world(comm: Any = None) -> Any:
    """Return a communicator: `comm`, or that of all ranks."""
    return mpi().COMM_WORLD if comm is None else comm


def private(comm: Any) -> Any:
    """Return a duplicate of a communicator, so that its user's messages are not taken for ours."""
    key = _key()
    found = comm.Get_attr(key)
    if found is None:
        found = comm.Dup()
        comm.Set_attr(key, found)
    return found


@cache
def _key() -> int:
    def free(comm: Any, key: int, duplicate: Any) -> None:
        duplicate.Free()

    return int(mpi().Comm.Create_keyval(delete_fn=free))


class Disagreed(Exception):
    """Carries an error that all ranks raise, through code that ends the job for any other."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


def agreed(
    comm: Any, check: Callable[[], T], kinds: tuple[type[Exception], ...] = (OclabError,)
) -> T:
    """Return ``check()``; if it fails on some ranks, raise the error of the first on all."""
    error: Exception | None = None
    try:
        value = check()
    except kinds as failed:
        error = failed
    first, _ = extremes(comm, comm.size if error is None else comm.rank)
    if first == comm.size:
        return value
    told = comm.bcast(None if error is None else (type(error), str(error)), root=first)
    where = f"rank {first}: " if comm.size > 1 else ""
    raise Disagreed(told[0](f"{where}{told[1]}"))


def extremes(comm: Any, number: int) -> tuple[int, int]:
    """Return the least and the greatest of a number of 63 bits of each rank."""
    both = np.array([number, -number], np.int64)
    comm.Allreduce(mpi().IN_PLACE, both, op=mpi().MIN)  # an object would take ten times as long
    least, most = both.tolist()
    return least, -most


def everywhere(comm: Any, holds: bool) -> bool:
    """Return whether something holds on all ranks."""
    return extremes(comm, int(holds))[0] == 1  # NumPy negates no bool


def _number(value: Any) -> int:
    """Return a number that two values share only if they are pickled alike."""
    return int.from_bytes(hashlib.sha256(pickle.dumps(value)).digest()[:7], "big")


def same(comm: Any, value: Any, what: str) -> None:
    """Raise `InvalidConfig` on all ranks if they do not all have the same value."""
    least, most = extremes(comm, _number(value))
    if least == most:
        return
    found = comm.allgather(value)
    if any(one != found[0] for one in found):
        rank = next(i for i, one in enumerate(found) if one != found[0])
        differing = f"{found[0]!r} on rank 0, {found[rank]!r} on {rank}"
        text = f"{what} must be the same on all ranks: {differing}"
        raise Disagreed(InvalidConfig(text))


def collective(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function that all ranks call together fail together; see the module.

    Within another one, it only runs.
    """

    @wraps(function)
    def call(*given: P.args, **how: P.kwargs) -> T:
        if getattr(_depth, "inside", False):
            return function(*given, **how)
        _depth.inside = True
        try:
            with _deadline(function.__name__.lstrip("_")):
                return function(*given, **how)
        except Disagreed as disagreed:
            raise disagreed.error from None
        except (Exception, KeyboardInterrupt) as error:
            if mpi().COMM_WORLD.size == 1 or _is_of_call(error):
                raise
            abort(error)
            raise
        finally:
            _depth.inside = False

    return call


def _is_of_call(error: BaseException) -> bool:
    """Return whether Python refused the arguments: on all ranks, before the function began."""
    last = error.__traceback__
    return isinstance(error, TypeError) and (last is None or last.tb_next is None)


def abort(error: BaseException) -> None:
    """Print an error and end all ranks of the job with its status."""
    if isinstance(error, KeyboardInterrupt):
        _end("interrupted", INTERRUPTED)
        return
    known = isinstance(error, OclabError)
    status = error.exit_status if isinstance(error, OclabError) else FAILED
    if not known:
        traceback.print_exception(error)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    _end(text, status)


def _end(text: str, status: int) -> None:
    MPI = mpi()
    sys.stdout.flush()
    print(f"oclab: rank {MPI.COMM_WORLD.rank}: {text}", file=sys.stderr, flush=True)
    time.sleep(PRINT_SECONDS)  # else mpiexec may end before it has passed the message on
    threading.Thread(target=_kill, daemon=True).start()
    MPI.COMM_WORLD.Abort(status)  # with MPICH this returns
    time.sleep(2 * GRACE_SECONDS)


def _kill() -> None:
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def seconds_allowed() -> float | None:
    """Return the seconds of `DEADLINE`; None without it."""
    text = os.environ.get(DEADLINE, "").strip()
    try:
        seconds = float(text) if text else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InvalidConfig(f"{DEADLINE} must be a positive number of seconds, not {text!r}")
    return seconds


@contextmanager
def _deadline(what: str) -> Iterator[None]:
    """End the job if this takes longer than `DEADLINE` says."""
    seconds = seconds_allowed()
    if seconds is None:
        yield
        return
    text = f"{what} took longer than {seconds:g} s ({DEADLINE})"
    timer = threading.Timer(seconds, _end, (text, LATE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
