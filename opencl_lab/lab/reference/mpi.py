"""References over MPI, whose ranks are started with `mpiexec`.

The parent has a socket to each rank, so it notices at once when one dies, and none outlives it.
There the ranks wait for requests without using processor time: in MPI they would spin, and slow
down other measurements.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from opencl_lab.core.early import undo
from opencl_lab.core.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.core.memory import check_shared
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.descriptor import Arrays, MpiReference
from opencl_lab.workers.link import Ended, Frames, Link, pack
from opencl_lab.workers.serving import KILL, find
from opencl_lab.workers.worker import command, end, last_line, opening

NO_SOCKETS = "ranks connect by Unix sockets, which this system does not have"
INSTALL_MPI = "pip install mpi4py mpich"
MPI_ENVIRONMENT = {  # Open MPI refuses root and more ranks than cores without these
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
START_SECONDS = 60.0  # timeout until all ranks are connected, or have their inputs
CALL_SECONDS = 60.0  # least timeout of a run
LEAST_RATE = 1e8  # products per second, for timeouts; the C kernels reach 1e9 and more
END_SECONDS = 5.0  # for mpiexec to end after its ranks
SHARED = "/dev/shm/mpich_shm_"
POLL_SECONDS = 0.1  # interval of checking that mpiexec lives, while ranks connect


def find_mpiexec() -> str | None:
    """Return the path of ``mpiexec``: from pip beside this interpreter, or from PATH."""
    folders = sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)
    return shutil.which("mpiexec", path=os.pathsep.join(folders))


def _unix_socket() -> socket.socket:
    """Return a socket whose address is a file, which only this user can reach."""
    if hasattr(socket, "AF_UNIX"):
        return socket.socket(socket.AF_UNIX)
    raise ReferenceUnavailable(NO_SOCKETS)


def no_mpi() -> str | None:
    """Return what MPI lacks here, and how to install it; None if nothing."""
    if not hasattr(socket, "AF_UNIX"):
        return NO_SOCKETS
    missing = [] if find_mpiexec() else ["no mpiexec on PATH"]
    if find_spec("mpi4py") is None:
        missing.append("no Python package mpi4py")
    return f"{' and '.join(missing)}; {INSTALL_MPI}" if missing else None


def shared_files(process: int | str = "self") -> set[Path]:
    """Return MPICH's files of shared memory, which it removes only at a normal exit."""
    try:
        maps = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return {Path(line.split(maxsplit=5)[-1]) for line in maps.splitlines() if SHARED in line}


def remove(files: Iterable[Path]) -> None:
    """Remove files, which may not exist."""
    for path in files:
        with suppress(OSError):
            path.unlink()


class Ranks:
    """The ranks of one reference on one problem; `close` it.

    Only rank 0 gets the inputs; distributing them belongs to each run. If the ranks do not connect
    within a minute, or not as one world, `ReferenceUnavailable` is raised.
    """

    def __init__(self, reference: MpiReference, problem: Any, inputs: Arrays, ranks: int):
        self.name = f"{reference.name} x{ranks}"
        self.workers = ranks
        self._seconds = reference.cost(problem) / LEAST_RATE if reference.cost else 0.0
        self._loaded = False
        task = reference.task(problem)
        load(reference.kernel, task)  # all ranks find it in the cache
        self._pids: list[int] = []
        self._files: set[Path] = set()
        self._links: list[Link] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the ranks)
        try:
            self._start(f"{reference.function.__module__}:{reference.function.__qualname__}")
            for_root = pack(("load", (task, inputs)))
            self._ask(START_SECONDS, pack(("load", (task, {}))), for_root)
            self._loaded = True
        except BaseException:
            self.close()
            raise

    def run(self, calls: int = 1) -> float:
        """Solve `calls` times back to back; return the seconds between two barriers of all ranks.

        `LaunchError` is raised if a rank fails, dies, or times out.
        """
        seconds = CALL_SECONDS + calls * self._seconds
        return float(max(self._ask(seconds, pack(("run", (calls,))))))

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        arrays: Arrays = self._ask(START_SECONDS, pack(("outputs", ())))[0]
        return arrays

    def close(self) -> None:
        """End all ranks, even during a run, and mpiexec."""
        process, self._process = self._process, None
        started = bool(self._pids)
        try:
            if process is not None and self._loaded:
                with suppress(Ended):
                    for link in self._links:
                        link.put(None)
                self._wait(process, END_SECONDS)
        finally:
            self._kill()
            self._printed.close()
            if process is not None:
                # Not killed at once, so that it can end processes that it has started.
                self._wait(process, END_SECONDS if started else POLL_SECONDS)
                end(process)
            remove(self._files)

    def _start(self, target: str) -> None:
        """Start mpiexec, and wait until all ranks have connected and joined one world."""
        mpiexec = find_mpiexec()
        if mpiexec is None:
            raise ReferenceUnavailable(f"{self.name}: no mpiexec; {INSTALL_MPI}")
        deadline = time.monotonic() + START_SECONDS
        with (
            scratch_folder("oclab-mpi-") as folder,  # private to this user
            _unix_socket() as listener,
        ):
            path = str(Path(folder, "s"))
            try:
                listener.bind(path)
                listener.listen(self.workers)
                self._process = subprocess.Popen(
                    [mpiexec, "-n", str(self.workers), *command(path)],
                    env={**os.environ, **MPI_ENVIRONMENT},
                    stdin=subprocess.DEVNULL,
                    stdout=self._printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise ReferenceUnavailable(
                    f"{self.name}: cannot start {mpiexec}: {error}"
                ) from error
            while len(self._links) < self.workers:
                self._welcome(listener, mpiexec, deadline)
        # Ranks join the world only after all have been told to.
        self._ask(START_SECONDS, opening(f"{__name__}:Rank", target))
        found = self._ask(START_SECONDS, pack(("who", ())))
        if {size for _, size, _ in found} != {self.workers}:
            raise ReferenceUnavailable(
                f"{self.name}: {mpiexec} started {self.workers} processes that are not connected, "
                f"so mpi4py belongs to another MPI; {INSTALL_MPI}"
            )
        self._links = [self._links[found.index(item)] for item in sorted(found)]
        self._pids = [pid for *_, pid in sorted(found)]
        self._files = shared_files(self._pids[0])

    def _welcome(self, listener: socket.socket, mpiexec: str, deadline: float) -> None:
        """Wait for the next process to connect."""
        assert self._process is not None
        listener.settimeout(POLL_SECONDS)
        try:
            self._links.append(Link(listener.accept()[0]))
        except TimeoutError:
            why = ""
            if self._process.poll() is not None:
                why = "ended"
            elif time.monotonic() > deadline:
                why = f"did not start all ranks within {START_SECONDS:g} s"
            if why:
                words = self._last_words()
                raise ReferenceUnavailable(f"{self.name}: {mpiexec} {why}: {words}") from None

    def _ask(self, seconds: float, request: Frames, for_root: Frames | None = None) -> list[Any]:
        """Send a request to all ranks; return their answers, the first that of rank 0."""
        kind: type[OclabError] = LaunchError if self._loaded else ReferenceUnavailable
        if self._process is None:
            raise kind(f"{self.name}: its processes were ended")
        deadline = time.monotonic() + seconds
        answers: dict[int, Any] = {}
        rank = 0
        try:
            for rank, link in enumerate(self._links):
                link.write(request if rank else for_root or request, deadline)
            while len(answers) < self.workers:
                waiting = {
                    link.connection: rank
                    for rank, link in enumerate(self._links)
                    if rank not in answers
                }
                ready = wait(waiting, max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError
                for rank in (waiting[found] for found in waiting if found in ready):
                    status, answers[rank] = self._links[rank].get(deadline)
                    if status == "failed":
                        raise kind(f"{self.name}: rank {rank}: {answers[rank]}")
        except TimeoutError as error:
            self._give_up()
            waited = f"no answer within {seconds:.0f} s; all ranks were ended"
            raise kind(f"{self.name}: {waited}") from error
        except Ended as error:
            self._give_up()
            words = self._last_words()
            raise kind(f"{self.name}: rank {rank} of {self.workers} died: {words}") from error
        except BaseException:
            self._give_up()  # other ranks may wait forever
            raise
        return [answers[rank] for rank in range(self.workers)]

    def _give_up(self) -> None:
        """Kill all ranks, even during a run; the output of mpiexec can still be read."""
        self._kill()
        if self._process is not None:
            self._wait(self._process, END_SECONDS)
        self._loaded = False

    def _kill(self) -> None:
        """Kill the ranks that are still running.

        While its connection is open, a process id cannot have been reused. Ranks whose id is not
        known yet end when their connection is closed.
        """
        for link, pid in zip_longest(self._links, self._pids):
            if pid is not None and not link.ended():
                self._files |= shared_files(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, KILL)
            link.close()
        self._links, self._pids = [], []

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    def _last_words(self) -> str:
        """Return the last error that was printed, or else the exit status of mpiexec."""
        said = last_line(self._printed, "error", "signal")[:200]
        code = None if self._process is None else self._process.returncode
        return said or f"mpiexec printed nothing, exit status {code}"


class Rank:
    """The handler in a rank, which joins the world; `target` is an `MpiReference.function`."""

    def __init__(self, target: str, say: Callable[[Any], None]):
        check_shared()
        mpi = import_module("mpi4py.MPI")  # initialises MPI; finalized when the interpreter exits
        undo["shared"] = lambda: remove(shared_files())
        self._world, self._clock = mpi.COMM_WORLD, mpi.Wtime
        self._function = find(target)
        self._call: Any = None
        self._outputs: Arrays = {}

    def who(self) -> tuple[int, int, int]:
        """Return the rank, the size of its world, and its process id."""
        return self._world.Get_rank(), self._world.Get_size(), os.getpid()

    def load(self, task: Any, inputs: Arrays) -> None:
        """Set the problem; only rank 0 gets the inputs."""
        self._call, self._outputs = self._function(self._world, task, inputs)

    def run(self, calls: int) -> float:
        """Return the seconds between barriers around `calls` back-to-back calls."""
        self._world.Barrier()
        begin = self._clock()
        for _ in range(calls):
            self._call()
        self._world.Barrier()
        return float(self._clock() - begin)

    def outputs(self) -> Arrays:
        """Return the outputs of the last call on rank 0, and none on others."""
        return self._outputs
