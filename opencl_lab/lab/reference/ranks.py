"""One rank of an MPI reference, as `opencl_lab.lab.reference.mpi` starts it.

Each rank has a socket of its own to the parent. There it waits for requests, where it takes no
processor time: ranks that wait in MPI spin, and would slow down whatever else is measured.

    hello                 -> rank, size of the world, process id
    ("load", task)        -> None; rank 0 gets the inputs, too
    ("run", calls)        -> seconds between the barriers around so many calls in a row
    ("outputs",)          -> arrays of the last call from rank 0, nothing from others
    ("end",)              -> no answer: it leaves MPI

If the other end of the socket closes, the process ends at once, whatever it does: so none is
left behind, also where the parent was killed.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.messages import Stream, receive, send

__all__ = ["main", "remove", "shared_files"]

SHARED = "/dev/shm/mpich_shm_"
HANGUP = getattr(select, "POLLRDHUP", select.POLLHUP)


def _end_with(connection: socket.socket) -> None:
    """End this process when the parent has closed the connection."""
    poll = select.poll()
    poll.register(connection, HANGUP)
    poll.poll()
    remove(shared_files())
    os._exit(1)


def shared_files(process: int | str = "self") -> set[Path]:
    """Return MPICH's files of shared memory, which it removes only at a regular end."""
    try:
        maps = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return {Path(line.split(maxsplit=5)[-1]) for line in maps.splitlines() if SHARED in line}


def remove(files: Iterable[Path]) -> None:
    """Remove files that may be gone."""
    for path in files:
        with suppress(OSError):
            path.unlink()


def _serve(world: Any, clock: Any, function: Any, stream: Stream) -> None:
    """Answer requests until the last one."""
    call: Any = None
    outputs: Arrays = {}
    while True:
        request, *rest = receive(stream)
        if request == "end":
            return
        reply: Any = None
        try:
            if request == "load":
                call, outputs = function(world, *rest)
            elif request == "run":
                world.Barrier()
                begin = clock()
                for _ in range(*rest):
                    call()
                world.Barrier()
                reply = clock() - begin
            else:
                reply = outputs
        except Exception as error:  # the parent ends all ranks, which may wait for this one
            send(stream, ("error", f"{type(error).__name__}: {error}"))
        else:
            send(stream, ("ok", reply))


def main(path: str, target: str) -> None:
    """Connect to the socket `path`, join the world, and serve the function `target`."""
    # Ctrl-C reaches every process of the terminal: the parent decides, and closes the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    # Importing it starts MPI, which ends with the interpreter.
    mpi = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    with connection.makefile("rwb") as stream:
        send(stream, (world.Get_rank(), world.Get_size(), os.getpid()))
        _serve(world, mpi.Wtime, function, stream)
