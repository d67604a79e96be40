"""A rank of an MPI reference, as started by `opencl_lab.lab.reference.mpi`.

Each rank has a socket to the parent, where it waits for requests without using processor time:
ranks that wait in MPI spin, and would slow down other measurements.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from opencl_lab.core.early import undo
from opencl_lab.core.memory import check_shared
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.workers.serving import find

SHARED = "/dev/shm/mpich_shm_"


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


class Rank:
    """The handler of a rank, which joins the world; `target` is an `MpiReference.function`."""

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
