"""Check that rows of keys are sorted permutations of others, in one pass over both.

Rows must be in order, also across blocks, and contain the same keys. The latter is checked by two
sums modulo 2^64 over the bits of the keys, plain and mixed, which do not depend on their order.
Other keys have the same two sums with a probability of about 2^-64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from opencl_lab.drivers.processes import default_threads
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.problem import SortProblem

BLOCK = 1 << 15
"""Number of keys that a thread checks together, so that temporaries stay in its cache."""
MIXERS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))

Keys = np.ndarray[Any, Any]


class Readable(Protocol):
    """A source of bytes that several threads can read at once."""

    def read(self, target: np.ndarray[Any, np.dtype[np.uint8]], begin: int) -> None:
        """Fill `target` with the bytes from `begin` on."""


class _Found(NamedTuple):
    """The findings about a block: first and last keys of rows, and sums before and after."""

    begin: int
    size: int
    first: int
    last: int
    ordered: bool
    before: Keys
    after: Keys


def find_fault(
    problem: SortProblem,
    given: Readable,
    result: Readable,
    done: Callable[[int], None] = lambda keys: None,
) -> str | None:
    """Return what is wrong with sorted rows of the keys in `given`; None if nothing.

    `done` is called with the number of keys checked since its last call.
    """
    last = 0
    sums = np.zeros((2, 2), np.uint64)
    for block in _in_turn(problem, given, result):
        done(block.size)
        row, place = divmod(block.begin, problem.n)
        if not block.ordered or (place and block.first < last):
            return f"the keys of row {row} are not in order"
        last = block.last
        if block.size >= problem.n:  # whole rows
            if (block.before != block.after).any():
                return f"row {row} or one after it holds other keys than before"
            continue
        if not place:
            sums[:] = 0
        sums += block.before[:, 0], block.after[:, 0]
        if place + block.size == problem.n and (sums[0] != sums[1]).any():
            return f"row {row} holds other keys than before"
    return None


def _in_turn(problem: SortProblem, given: Readable, result: Readable) -> Iterator[_Found]:
    """Yield the findings about blocks, which threads check, in order."""
    threads, blocks = default_threads(), _blocks(problem)
    with ThreadPoolExecutor(threads, "oclab-check") as pool:
        while some := list(islice(blocks, 4 * threads)):
            yield from pool.map(lambda block: _look(problem, given, result, *block), some)


def _blocks(problem: SortProblem) -> Iterator[tuple[int, int]]:
    """Yield first key and size of blocks: several whole rows, or parts of one row."""
    n, rows = problem.n, problem.rows
    if n <= BLOCK:
        step = max(BLOCK // max(n, 1), 1)
        for row in range(0, rows if n else 0, step):
            yield row * n, min(step, rows - row) * n
        return
    for row in range(rows):
        for begin in range(0, n, BLOCK):
            yield row * n + begin, min(BLOCK, n - begin)


def _look(problem: SortProblem, given: Readable, result: Readable, begin: int, size: int) -> _Found:
    keys = np.empty(size, problem.dtype)
    length = min(problem.n, size)
    sums = []
    for data in (given, result):
        data.read(keys.view(np.uint8), begin * problem.dtype.itemsize)
        sums.append(_sums(keys, length))
    order = codes(keys, problem.descending).reshape(-1, length)
    ordered = bool((order[:, 1:] >= order[:, :-1]).all())
    return _Found(begin, size, int(order[0, 0]), int(order[-1, -1]), ordered, *sums)


def _sums(keys: Keys, length: int) -> Keys:
    """Return sums of each row's keys by their bits, plain and mixed (as by SplitMix64)."""
    bits = keys.view(f"u{keys.itemsize}").astype(np.uint64)
    plain = bits.reshape(-1, length).sum(axis=1)
    shifted = np.empty_like(bits)
    bits += MIXERS[0]
    for shift, factor in ((30, MIXERS[1]), (27, MIXERS[2])):
        bits ^= np.right_shift(bits, np.uint64(shift), out=shifted)
        bits *= factor
    bits ^= np.right_shift(bits, np.uint64(31), out=shifted)
    return np.stack([plain, bits.reshape(-1, length).sum(axis=1)])
