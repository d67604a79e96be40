"""NumPy in several threads: one does not use all of a machine's bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from opencl_lab.drivers.processes import default_threads
from opencl_lab.runtime.cache import bytes_limit
from opencl_lab.runtime.freeing import call_when_freeing
from opencl_lab.runtime.host_results import MOST_IDLE, HostResults

T = TypeVar("T")
Array: TypeAlias = np.ndarray[Any, Any]

PIECE = 1 << 18
"""Bytes that a thread copies at once; NumPy lets other threads run meanwhile."""
TILE = 128
"""Rows and columns that are transposed together: they fit into the cache."""
PADDING = 8
"""Elements by which rows of a tile are further apart than they are long."""


def copy_all(pairs: Iterable[tuple[Array, Array]]) -> None:
    """Copy each second array to the first one, which has its shape and shares no memory with it."""
    pieces = [piece for target, source in pairs for piece in _pieces(target, source)]
    in_threads(lambda piece: _copy(*piece), pieces)


def in_threads(function: Callable[[T], None], items: Sequence[T]) -> None:
    """Call a function, whose work is NumPy's on large arrays, with each item."""
    if len(items) < 2:
        for item in items:
            function(item)
        return
    for _ in _threads().map(function, items):
        pass


_RESULTS = HostResults(bytes_limit("OCLAB_POOL_BYTES", MOST_IDLE))
call_when_freeing(lambda seconds: _RESULTS.free_held())


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array, in the memory of an earlier one if its size is the same."""
    return _RESULTS.empty(shape, dtype)


def copied(source: Array) -> Array:
    """Return a dense copy of an array."""
    target = new_array(source.shape, source.dtype)
    copy_all([(target, source)])
    return target


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(default_threads(), "oclab-exchange")


def _pieces(target: Array, source: Array) -> Iterator[tuple[Array, Array]]:
    """Yield parts of both arrays."""
    if not target.nbytes:
        return
    if target.ndim == 2 and abs(source.strides[0]) < abs(source.strides[1]):  # transposed
        for i in range(0, target.shape[0], TILE):
            for j in range(0, target.shape[1], TILE):
                at = slice(i, i + TILE), slice(j, j + TILE)
                yield target[at], source[at]
        return
    axis = int(np.argmax(target.shape))
    count = min(target.shape[axis], math.ceil(target.nbytes / PIECE))
    step = math.ceil(target.shape[axis] / count)
    for begin in range(0, target.shape[axis], step):
        part = (*(slice(None),) * axis, slice(begin, begin + step))
        yield target[part], source[part]


def _copy(target: Array, source: Array) -> None:
    if source.ndim == 2 and abs(source.strides[0]) < abs(source.strides[1]):
        # Lines that lie a power of two apart would push each other out of the cache.
        rows, columns = source.shape
        aside = np.empty((columns, rows + PADDING), source.dtype)[:, :rows]
        np.copyto(aside, source.T)
        source = aside.T
    np.copyto(target, source)
