"""Memory for large results of calls on host arrays, which is used again when they are gone.

An allocator of C gives large blocks back to the system at once. So each page of a new result comes
into being when it is first written, cleared by the system: 4 to 9 of the 40 ms in which ten
million keys are sorted. Here the memory of a result that nobody has any more, views included,
serves the next result of the same size. Calls on host arrays wait for their end, so that no
command uses it then.

Large results begin with a line of a cache. NumPy's begin 16 bytes after one, so that each vector of
64 bytes that is stored touches two lines: products of few k take 3 to 18 % more processor time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.runtime.freeing import free_unused
from opencl_lab.runtime.results import Pool

LEAST = 32 << 20
"""Bytes from which glibc, whatever it has seen, takes each block from the system."""
ALIGNED = 1 << 20
"""Bytes from which results begin with a line of a cache."""
LINE_BYTES = 64
MOST_IDLE = 512 << 20
"""Bytes that are kept at most."""


class _Pages(np.ndarray):
    """Memory of the pool; of another type than results, as NumPy leaves out bases of one type."""


class _Owner(np.ndarray):
    """All of a block: the base of a result, which dies with the last view of it.

    A weak reference with a callback, as device arrays have, would die before its array does.
    """

    pool: Pool | None = None  # of views of it
    block: _Pages

    def __del__(self) -> None:
        if self.pool is not None:
            self.pool.give(self.block.nbytes, self.block)


def _new_pages(nbytes: int) -> Any:
    """Return new memory and where its first whole line begins, with room for so many bytes."""
    try:
        pages = _Pages(nbytes + LINE_BYTES, np.uint8)
    except MemoryError:
        free_unused()
        pages = _Pages(nbytes + LINE_BYTES, np.uint8)
    return pages, -pages.__array_interface__["data"][0] % LINE_BYTES


def _new_block(nbytes: int) -> Any:
    pages, first = _new_pages(nbytes)
    return pages[first : first + nbytes]


class HostResults(Pool):
    """Blocks of the host's memory that no array lives in, of `most_idle` bytes at most."""

    def __init__(self, most_idle: float):
        super().__init__(_new_block, min(most_idle, MOST_IDLE))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a new array of any contents, as `numpy.empty` does.

        Those of a megabyte and more do not own their memory: the base of large ones gives it back
        to the pool.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes < LEAST or nbytes > self._most_idle:
            if nbytes < ALIGNED:
                return np.empty(shape, dtype)
            return np.ndarray(shape, dtype, *_new_pages(nbytes))
        block = self.take(nbytes)
        owner = block.view(_Owner)
        owner.pool, owner.block = self, block
        return np.ndarray(shape, dtype, buffer=owner)
