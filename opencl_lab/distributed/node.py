"""Memory that all ranks of a node read and write: what they exchange is copied once.

```text
 rank 0: its part  --+           +--->  part of rank 0  |
                      > threads -+                      |  one window of MPI, used in place
 rank 1: its part  --+           +--->  part of rank 1  |
                                     fence
```

By messages, the same data are packed, copied to a buffer of MPI, copied from it, and unpacked. Two
windows take turns, and an exchange begins when all ranks have come to it. So the result of an
exchange stays valid during the next one, and is overwritten by the one after that.

Source: T. Hoefler et al., "MPI + MPI: a new hybrid approach to parallel programming with MPI plus
shared memory", Computing 95, 2013.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.memory import SHARED, host_memory, memory_left
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.layout import Shape
from opencl_lab.distributed.mpi import agreed, everywhere, mpi, near_ranks, private
from opencl_lab.runtime.pinned import Pinned, pinned_or_none

SWITCH = "OCLAB_NODE_MEMORY"
"""The environment variable that leaves the exchanges of a node to messages."""
ON, OFF = ("on", "1", "yes", "true", ""), ("off", "0", "no", "false")
POPULATE_WRITE = 23  # of `madvise`, since Linux 5.14
LARGEST = 0.125
"""The part of the memory that a window may take."""
LEAST = 1 << 20
"""Bytes of the smallest window."""
SLACK = 1.25
"""How much larger a window is than what it is made for: sizes may grow slowly."""
LINE = 64
"""Bytes of a cache line."""


class NodeMemory:
    """The windows of a communicator whose ranks are all on one node."""

    def __init__(self, comm: Any):
        self.comm = comm
        self._windows: list[tuple[Any, Array] | None] = [None, None]
        self._pinned: list[dict[tuple[int, int], Pinned | None]] = [{}, {}]
        self._turn = 0

    def parts(self, shapes: Sequence[Shape], dtype: np.dtype[Any]) -> list[Array] | None:
        """Return arrays that all ranks share, or None on all ranks if there is no room.

        All ranks call it with the same shapes, write what others need, and call `fence`. The arrays
        are one after the other, at cache lines.
        """
        self.comm.Barrier()  # no rank uses any more what was in this window
        sizes = [math.prod(shape) * dtype.itemsize for shape in shapes]
        starts = list(accumulate((-(-size // LINE) * LINE for size in sizes), initial=0))
        whole = self._window(starts[-1])
        if whole is None:
            return None
        return [
            np.ndarray(shape, dtype, whole, start)
            for start, shape in zip(starts[:-1], shapes, strict=True)
        ]

    def _window(self, nbytes: int) -> Array | None:
        found = self._windows[self._turn]
        if found is None or found[1].size < nbytes:
            wanted = max(int(SLACK * nbytes), LEAST)
            if not self.comm.bcast(_has_room(wanted) if self.comm.rank == 0 else None, root=0):
                return None
            found = self._made(wanted)
            if found is None:
                return None
        self._turn = 1 - self._turn
        return found[1][:nbytes]

    def _made(self, nbytes: int) -> tuple[Any, Array] | None:
        """Replace the window whose turn it is; None on all ranks if it cannot be written to."""
        MPI = mpi()
        self._free(self._turn)
        window = MPI.Win.Allocate_shared(0 if self.comm.rank else nbytes, 1, comm=self.comm)
        window.Lock_all(MPI.MODE_NOCHECK)
        memory, _ = window.Shared_query(0)
        found = window, np.frombuffer(memory, np.uint8)
        self._windows[self._turn] = found
        rank, ranks = self.comm.rank, self.comm.size
        own = found[1][nbytes * rank // ranks : nbytes * (rank + 1) // ranks]
        if not everywhere(self.comm, _reserved(own)):
            self._free(self._turn)
            return None
        return found

    def pinned(self, queue: Any) -> Pinned | None:
        """Return the window of the last `parts`, pinned for the device of a queue.

        It is pinned until it is replaced or its communicator is freed. None if it cannot be.
        """
        turn, place = 1 - self._turn, (queue.context.int_ptr, queue.device.int_ptr)
        found, pinned = self._windows[turn], self._pinned[turn]
        if found is not None and place not in pinned:
            pinned[place] = pinned_or_none(found[1], queue)
        return pinned.get(place)

    def give_back(self) -> None:
        """Let the next exchange have the window of the last `parts`, which was not written to.

        All ranks call it. Else that exchange would write to the window of the one before.
        """
        self._turn = 1 - self._turn

    def fence(self) -> None:
        """Wait until all ranks have written what they share; from then on it can be read."""
        windows = [found[0] for found in self._windows if found]
        for window in windows:
            window.Sync()
        self.comm.Barrier()
        for window in windows:
            window.Sync()

    def free(self) -> None:
        """Free all windows; a collective call."""
        for turn in range(len(self._windows)):
            self._free(turn)

    def _free(self, turn: int) -> None:
        self._pinned[turn].clear()
        found, self._windows[turn] = self._windows[turn], None
        if found is not None:
            found[0].Unlock_all()
            found[0].Free()


def _has_room(nbytes: int) -> bool:
    """Return whether there is so much memory now."""
    with suppress(OSError):
        free = min(shutil.disk_usage(SHARED).free, memory_left())
        return 2 * nbytes < free and nbytes <= LARGEST * host_memory()
    return False


def _reserved(memory: Array) -> bool:
    """Take the pages of shared memory; return False where a write would end the process.

    Others may have taken what was free, by windows that are not written to yet or by files.
    """
    begin = memory.ctypes.data & -mmap.PAGESIZE
    size = memory.ctypes.data + memory.size - begin
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such call
        library = ctypes.CDLL(None, use_errno=True)
        advice = ctypes.c_void_p(begin), ctypes.c_size_t(size), POPULATE_WRITE
        return library.madvise(*advice) == 0 or ctypes.get_errno() == errno.EINVAL
    return True


def node_of(comm: Any) -> NodeMemory | None:
    """Return the shared memory of a communicator; None if its ranks do not have such.

    It is found out once for each communicator.
    """
    key = _key()
    found = comm.Get_attr(key)
    if found is None:
        found = (NodeMemory(private(comm)) if _shared(comm) else None,)
        comm.Set_attr(key, found)
    node: NodeMemory | None = found[0]
    return node


def _shared(comm: Any) -> bool:
    """Return whether all ranks are on one node, and may share memory there."""
    if comm.size == 1:
        return False
    off = agreed(comm, _is_off)
    cannot = near_ranks(comm)[1] < comm.size or off or not SHARED.is_dir()
    return everywhere(comm, not cannot)


def _is_off() -> bool:
    word = os.environ.get(SWITCH, "on").strip().lower()
    if word not in (*ON, *OFF):
        raise InvalidConfig(f"{SWITCH} must be on or off, not {word!r}")
    return word in OFF


@cache
def _key() -> int:
    def free(comm: Any, key: int, found: tuple[NodeMemory | None]) -> None:
        if found[0] is not None:
            found[0].free()

    return int(mpi().Comm.Create_keyval(delete_fn=free))
