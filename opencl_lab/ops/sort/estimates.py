"""Estimated times of a sort on the threads of a CPU: see `opencl_lab.ops.estimates`."""

from __future__ import annotations

import math

from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.quicksort_cpu import pays, word_bytes
from opencl_lab.ops.sort.radix_cpu import CUT, LONGEST_NETWORKS

CALL_US = 0.3
"""A kernel with hardly any keys."""
ROW_NS = 3.0
"""A row, besides its keys."""
BLOCK_NS, DOUBLING_NS = 0.35, 0.09
"""A key in networks and quicksort by words of 4 bytes: in a row of 16 keys, and more for each
doubling of it; twice that for words of 8 bytes."""
RADIX_NS = {1: 1.1, 2: 1.8, 4: 2.3, 8: 2.6}
"""A key in radix passes of one thread, by its bytes; floats take twice."""
VALUE_NS = 0.5
"""What a value adds to its key."""
CUT_US = 15.0
"""A row that all threads share, besides its keys: for phases that wait."""
CUT_NS = {1: 1.0, 2: 2.6, 4: 1.6, 8: 3.7}
"""A key there, of each thread, by its bytes."""
CUT_VALUE_NS = 1.8
"""What a value adds to its key there."""


def _networks_us(problem: SortProblem, size: int) -> float:
    doublings = max(math.log2(max(problem.n, 1) / 16), 0)
    per_key = (BLOCK_NS + DOUBLING_NS * doublings) * size / 4
    return _total_us(problem, per_key + VALUE_NS * bool(problem.value_bytes))


def _radix_us(problem: SortProblem) -> float:
    per_key = RADIX_NS[problem.dtype.itemsize]
    if problem.dtype.kind == "f" and problem.dtype.itemsize >= 4:
        per_key *= 2
    return _total_us(problem, per_key + VALUE_NS * _has_values(problem))


def _has_values(problem: SortProblem) -> bool:
    return bool(problem.indices or problem.value_bytes)


def _total_us(problem: SortProblem, per_key: float) -> float:
    return CALL_US + 1e-3 * problem.rows * (ROW_NS + problem.n * per_key)


def serial_us(problem: SortProblem) -> float:
    """Return the microseconds on one thread."""
    size = word_bytes(problem)
    if size is not None and pays(problem, 1):
        return _networks_us(problem, size)
    return _radix_us(problem)


def parallel_us(problem: SortProblem, units: int) -> float:
    """Return the microseconds on `units` threads."""
    size = problem.dtype.itemsize
    if problem.n > CUT:
        per_key = CUT_NS[size] + CUT_VALUE_NS * _has_values(problem)
        return CUT_US + _total_us(problem, per_key) / units
    alone = not _has_values(problem) and problem.bits is None
    network = alone and problem.n <= LONGEST_NETWORKS.get(size, 0)
    words = word_bytes(problem) if pays(problem, units) else size if network else None
    one = _networks_us(problem, words) if words else _radix_us(problem)
    return one / min(units, max(problem.rows, 1))
