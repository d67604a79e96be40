"""References over MPI: ranks that `mpiexec` starts, from here.

The parent talks to each rank by a socket of its own (see `opencl_lab.lab.reference.ranks`), so it
sees at once when one dies, and none outlives it.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.drivers.processes import end
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.descriptor import Arrays, MpiReference
from opencl_lab.lab.reference.messages import Stream, receive, send
from opencl_lab.lab.reference.ranks import remove, shared_files

__all__ = ["INSTALL_MPI", "MPI_ENVIRONMENT", "Ranks", "find_mpiexec", "no_mpi"]

INSTALL_MPI = "pip install mpi4py mpich"
MPI_ENVIRONMENT = {  # Open MPI refuses root and more ranks than cores without these
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
START = """
import sys
sys.path[:] = sys.argv[3:]
from opencl_lab.lab.reference.ranks import main
main(*sys.argv[1:3])
"""
START_SECONDS = 60.0  # until all ranks have come up, or have got their inputs
CALL_SECONDS = 60.0  # that a run may take whatever it does
LEAST_RATE = 1e8  # products per second; the C kernels reach 1e9 and more
END_SECONDS = 5.0  # for mpiexec to end by itself, once its ranks have
KILL_SECONDS = 2.0  # for a rank to end when its connection is closed
LOOK = 0.1  # seconds between looks at whether mpiexec lives, while ranks come up


def find_mpiexec() -> str | None:
    """Return the path of ``mpiexec``: that of pip beside this interpreter, or the one on PATH."""
    search = os.pathsep.join(
        [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)],
    )
    return shutil.which("mpiexec", path=search)


def no_mpi() -> str | None:
    """Return what MPI lacks here, and how to install it, or None."""
    missing = [] if find_mpiexec() else ["no mpiexec on PATH"]
    if find_spec("mpi4py") is None:
        missing.append("no Python package mpi4py")
    return f"{' and '.join(missing)}; {INSTALL_MPI}" if missing else None


class Ranks:
    """The ranks of one reference on one problem; `close` it.

    Parameters
    ----------
    reference : MpiReference
    problem : object
    inputs : dict of arrays
        Only rank 0 gets them; how the others come by theirs is part of each run.
    ranks : int

    Raises
    ------
    ReferenceUnavailable
        If they do not come up within a minute, or not as one world; the message says why.
    BuildError
        If the compiler refuses the kernel.
    """

    def __init__(self, reference: MpiReference, problem: Any, inputs: Arrays, ranks: int):
        self.name = f"{reference.name} x{ranks}"
        self._count = ranks
        self._seconds = reference.steps(problem) / LEAST_RATE if reference.steps else 0.0
        self._loaded = False
        task = reference.task(problem)
        load(reference.kernel, task)  # all ranks find it in the cache
        target = f"{reference.function.__module__}:{reference.function.__qualname__}"
        self._stack = ExitStack()
        self._pids: list[int] = []
        self._files: set[Path] = set()
        self._sockets: list[socket.socket] = []
        self._streams: list[Stream] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._printed = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        try:
            self._start(target)
            self._ask(START_SECONDS, ("load", task, {}), ("load", task, inputs))
            self._loaded = True
        except BaseException:
            self.close()
            raise

    def run(self, calls: int = 1) -> float:
        """Solve so many times in a row; return the seconds between two barriers of all ranks.

        Raises
        ------
        LaunchError
            If a rank fails, dies, or gives no answer in a time that would be long.
        """
        return float(max(self._ask(CALL_SECONDS + calls * self._seconds, ("run", calls))))

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        arrays: Arrays = self._ask(START_SECONDS, ("outputs",))[0]
        return arrays

    def close(self) -> None:
        """End all ranks, also in the middle of a run, and mpiexec."""
        process, self._process = self._process, None
        started = bool(self._pids)
        try:
            if process is not None and self._loaded:
                with suppress(OSError):
                    for stream in self._streams:
                        send(stream, ("end",))
                self._wait(process, END_SECONDS)
        finally:
            self._kill()
            with suppress(OSError):  # unsent bytes, which nobody waits for any more
                self._stack.close()  # ranks that are not known yet end by this
            if process is not None:
                # It has processes of its own to end, where it has started any.
                self._wait(process, END_SECONDS if started else LOOK)
                end(process, group=True)
            remove(self._files)

    def _start(self, target: str) -> None:
        """Start mpiexec, and wait until all ranks have connected and joined one world."""
        mpiexec = find_mpiexec()
        if mpiexec is None:
            raise ReferenceUnavailable(f"{self.name}: no mpiexec; {INSTALL_MPI}")
        search = map(os.path.abspath, sys.path)  # what imports here must import there
        with (
            tempfile.TemporaryDirectory(prefix="oclab-mpi-") as folder,  # nobody else can enter
            socket.socket(socket.AF_UNIX) as listener,
        ):
            path = str(Path(folder, "s"))
            command = [mpiexec, "-n", str(self._count), sys.executable, "-c", START, path, target]
            try:
                listener.bind(path)
                listener.listen(self._count)
                self._process = subprocess.Popen(
                    [*command, *search],
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
            deadline = time.monotonic() + START_SECONDS
            found = [self._welcome(listener, mpiexec, deadline) for _ in range(self._count)]
        if {size for _, size, *_ in found} != {self._count}:
            raise ReferenceUnavailable(
                f"{self.name}: {mpiexec} started {self._count} processes that do not know of each "
                f"other, so mpi4py is one of another MPI; {INSTALL_MPI}"
            )
        for _, _, pid, connection, stream in sorted(found, key=lambda item: item[0]):
            self._pids.append(pid)
            self._sockets.append(connection)
            self._streams.append(stream)
        self._files = shared_files(self._pids[0])

    def _welcome(
        self, listener: socket.socket, mpiexec: str, deadline: float
    ) -> tuple[int, int, int, socket.socket, Stream]:
        """Return the rank that comes up next: number, size of its world, process, connection."""
        assert self._process is not None
        listener.settimeout(LOOK)
        while True:
            try:
                connection, _ = listener.accept()
                break
            except TimeoutError:
                why = ""
                if self._process.poll() is not None:
                    why = "ended"
                elif time.monotonic() > deadline:
                    why = f"did not bring up all ranks within {START_SECONDS:g} s"
                if why:
                    words = self._last_words()
                    raise ReferenceUnavailable(f"{self.name}: {mpiexec} {why}: {words}") from None
        self._stack.enter_context(connection)
        stream: Stream = self._stack.enter_context(connection.makefile("rwb"))
        connection.settimeout(max(LOOK, deadline - time.monotonic()))
        try:
            rank, size, pid = receive(stream)
        except (OSError, EOFError) as error:
            raise ReferenceUnavailable(
                f"{self.name}: a rank did not come up: {self._last_words()}"
            ) from error
        return rank, size, pid, connection, stream

    def _ask(
        self, seconds: float, request: Sequence[Any], root_request: Sequence[Any] | None = None
    ) -> list[Any]:
        """Send a request to all ranks; return their answers, the first that of rank 0."""
        kind: type[OclabError] = LaunchError if self._loaded else ReferenceUnavailable
        if self._process is None:
            raise kind(f"{self.name}: its processes were ended")
        deadline = time.monotonic() + seconds
        answers: dict[int, Any] = {}
        rank = 0
        try:
            with selectors.DefaultSelector() as selector:
                for rank, connection in enumerate(self._sockets):
                    connection.settimeout(seconds)
                    send(self._streams[rank], request if rank else root_request or request)
                    selector.register(connection, selectors.EVENT_READ, rank)
                while len(answers) < self._count:
                    ready = selector.select(max(0.0, deadline - time.monotonic()))
                    if not ready:
                        raise TimeoutError
                    for key, _ in ready:
                        rank = key.data
                        status, answers[rank] = receive(self._streams[rank])
                        selector.unregister(key.fileobj)
                        if status == "error":
                            raise kind(f"{self.name}: rank {rank}: {answers[rank]}")
        except TimeoutError as error:
            self._give_up()
            waited = f"no answer within {seconds:.0f} s; all ranks were ended"
            raise kind(f"{self.name}: {waited}") from error
        except (OSError, EOFError) as error:
            self._give_up()
            words = self._last_words()
            raise kind(f"{self.name}: rank {rank} of {self._count} died: {words}") from error
        except BaseException:
            self._give_up()  # others may wait for what never comes
            raise
        return [answers[rank] for rank in range(self._count)]

    def _give_up(self) -> None:
        """End all ranks in the middle of what they do; what mpiexec printed can still be read."""
        self._kill()
        if self._process is not None:
            self._wait(self._process, END_SECONDS)
        self._loaded = False

    def _kill(self) -> None:
        """End the ranks that still run: by closing the connection, else by a signal.

        A process whose connection is open is no other one.
        """
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + KILL_SECONDS
        for connection, pid in zip(self._sockets, self._pids, strict=True):
            try:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                while connection.recv(1 << 16):  # what nobody waits for any more
                    pass
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended
        self._sockets, self._pids = [], []

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    def _last_words(self) -> str:
        """Return the last error that was printed, or else what mpiexec ended with."""
        self._printed.seek(0)
        lines = [line.strip() for line in self._printed.read().decode(errors="replace").split("\n")]
        errors = [line for line in lines if "error" in line.lower() or "signal" in line.lower()]
        said = errors or [line for line in lines if line]
        code = None if self._process is None else self._process.returncode
        return said[-1][:200] if said else f"mpiexec says nothing, exit status {code}"
