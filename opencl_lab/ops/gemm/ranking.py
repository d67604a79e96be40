"""Which algorithm of the matrix product is probably the fastest, by shape and kind of device.

These are rules and not a model of times, as few things decide. A product with few rows or columns
is bound by memory, so one read of the matrix is best, until its sums no longer fit registers.
Units that few devices have come next, where the algorithm for them says that it pays. Otherwise
there is one best algorithm for each kind of device. All numbers were measured at 80 shapes, in
public calls, on an NVIDIA H200 and on Intel Xeons of 2 and of 16 cores; those of `direct` and of
one thread on an AMD EPYC (Zen 5).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_one_thread
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.thin.lines import is_along, is_other_along, side_of

GPU_SIZES = (1 << 20, 1 << 22, (1 << 23) - 1)
"""Most elements of a matrix that a GPU reads fast however few groups share it; that its caches
hold well; and that they hold at all. The tables below have a column for each, and one for more."""
GPU_FEW = {
    (True, True): (10, 10, 10, 10),
    (True, False): (10, 10, 10, 7),
    (False, True): (8, 8, 5, 4),
    (False, False): (8, 5, 5, 1),
}
"""Most rows or columns with which one read of the matrix is the fastest on a GPU: by whether the
lines of the matrix lie along k, and by whether those few do."""
FEW_INTEGERS = 8
"""Rows or columns up to which tiles of integers save a GPU nothing."""
CPU_CACHED, CPU_LARGE = 1 << 19, 1 << 23
"""Elements of a matrix that the caches of a CPU's cores no longer hold, and that no cache holds."""
CPU_FEW, CPU_FEW_CACHED, CPU_FEW_ACROSS = 8, 4, 16
"""Most rows or columns with which one read of the matrix is the fastest on the threads of a CPU; of
a matrix in the caches, where packed panels are better from a few rows on; and of one that no cache
holds and whose lines lie across k, where packing costs more than another read."""
LEAST_OF_STACK = 1 << 12
"""Least elements of a matrix of a stack that are worth starting a group, or an item of a CPU."""
ONE_THREAD_SIZES = (LEAST_OF_STACK, CPU_CACHED)
ONE_THREAD_COLUMNS, ONE_THREAD_ROWS, ONE_THREAD_ROWS_COPIED = (1, 6, 12), (1, 1, 4), (4, 12, 12)
"""Most columns, or rows, with which one read of the matrix is the fastest on one thread, for fewer
elements than each of these, and for more. The last are rows of real numbers, for matrices that
`direct` would copy."""
DIRECT_BYTES, DIRECT_B_BYTES, DIRECT_ROWS = 1 << 21, 5 << 16, 64
"""Bytes of both factors, and of a B that more than so many rows read again and again, from which
the caches of a CPU's core do not hold what it reads of them, so that packing pays."""
DIRECT_PRODUCT = 1 << 10
"""Least multiplications in a product of a stack that are worth starting an item of a CPU."""


def ranked(problem: GemmProblem, device: Device, special: Iterable[str] = ()) -> tuple[str, ...]:
    """Return names of algorithms, the fastest first; some may not support the problem.

    `special` ones are for units that the device has, and pay.
    """
    if problem.is_integer:
        few = device.kind == "cpu" or min(problem.m, problem.n) <= FEW_INTEGERS
        return ("direct", *(("naive", "tiled") if few else ("tiled", "naive")))
    general = ("packed", "blocked") if device.kind == "cpu" else ("blocked", "tiled")
    names = [*special, *general, "gemv", "naive", "tiled"]
    if device.kind == "cpu" and _is_small(problem, device):
        names.insert(0, "direct")
    if min(problem.m, problem.n) <= _most_few(problem, device):
        names.insert(0, "gemv")
    return tuple(dict.fromkeys(names))


def _is_small(problem: GemmProblem, device: Device) -> bool:
    """Return whether `direct` is the fastest on a CPU, unless there are few rows or columns."""
    tiny = problem.m * problem.n * problem.k < DIRECT_PRODUCT
    if tiny and problem.batch > 1 and not is_one_thread(device):
        return False
    most = 2 * DIRECT_BYTES / max(2, device.compute_units)
    of_k = problem.k * problem.dtype.itemsize
    reread = problem.n * of_k if problem.m > DIRECT_ROWS else 0
    return (problem.m + problem.n) * of_k < most and reread < DIRECT_B_BYTES


def _most_few(problem: GemmProblem, device: Device) -> int:
    """Return the most rows or columns with which one read of the matrix is the fastest."""
    matrix = max(problem.m, problem.n) * problem.k
    if is_one_thread(device):
        size = bisect_right(ONE_THREAD_SIZES, matrix)
        if side_of(problem) == "a":
            return ONE_THREAD_COLUMNS[size]
        if problem.trans_b or problem.is_complex:
            return ONE_THREAD_ROWS_COPIED[size] // problem.components
        return ONE_THREAD_ROWS[size]
    if problem.batch > 1 and matrix < LEAST_OF_STACK:
        return -1
    if device.kind != "cpu":
        lies = is_along(problem), is_other_along(problem)
        return GPU_FEW[lies][bisect_left(GPU_SIZES, matrix)]
    if matrix < CPU_CACHED:
        return CPU_FEW_CACHED
    return CPU_FEW_ACROSS if not is_along(problem) and matrix >= CPU_LARGE else CPU_FEW
