"""A pool of memory for large results of calls on host arrays.

C's allocator returns large blocks to the system at once. So the system maps and clears each page of
a new result when it is first written: 4 to 9 of the 40 ms that sorting ten million keys takes. Here
the memory of a result is reused for the next one of the same size, once the result and all views of
it are deleted. Calls on host arrays wait for their end, so no command still uses it then.

Large results are aligned to a cache line. NumPy's begin 16 bytes after one, so each 64-byte vector
store touches two lines, and products with small k take 3 to 18 % more processor time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.runtime.freeing import with_room
from opencl_lab.runtime.results import Pool

LEAST = 32 << 20
"""Bytes from which glibc always takes a block from the system."""
ALIGNED = 1 << 20
"""Bytes from which results are aligned to a cache line."""
LINE_BYTES = 64
MOST_IDLE = 512 << 20
"""Most idle bytes."""

HostArray: TypeAlias = np.ndarray[Any, Any]


class _Pages(np.ndarray):
    """Memory of the pool; a type of its own, as NumPy skips bases of the same type."""


class _ResultOwner(np.ndarray):
    """A whole block: the base of a result, deleted with the last view of it.

    A weak reference with a callback, as for device arrays, would be deleted before the array.
    """

    pool: Pool | None = None  # None for views of it
    block: _Pages

    def __del__(self) -> None:
        if self.pool is not None:
            self.pool.give(self.block.nbytes, self.block)


def _new_pages(nbytes: int) -> Any:
    """Return new memory, and the offset of its first cache line, for `nbytes` from there."""
    pages = with_room(lambda: _Pages(nbytes + LINE_BYTES, np.uint8), nbytes)
    return pages, -pages.__array_interface__["data"][0] % LINE_BYTES


def _new_block(nbytes: int) -> Any:
    pages, first = _new_pages(nbytes)
    return pages[first : first + nbytes]


class HostResults(Pool):
    """Unused blocks of host memory, at most `most_idle` bytes."""

    def __init__(self, most_idle: float):
        super().__init__(_new_block, min(most_idle, MOST_IDLE))

    def maker(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], HostArray]:
        """Return a function that does the same as `empty`; small arrays are NumPy's own."""
        small = math.prod(shape) * dtype.itemsize < ALIGNED
        return partial(np.empty if small else self.empty, shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostArray:
        """Return an uninitialized array, as `numpy.empty` does.

        Arrays of a megabyte and more do not own their memory: the base of a large one returns it to
        the pool.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes < LEAST or nbytes > self._most_idle:
            if nbytes < ALIGNED:
                return np.empty(shape, dtype)
            return np.ndarray(shape, dtype, *_new_pages(nbytes))
        block = self.take(nbytes)
        owner = block.view(_ResultOwner)
        owner.pool, owner.block = self, block
        return np.ndarray(shape, dtype, buffer=owner)
