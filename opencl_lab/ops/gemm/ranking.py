"""Which algorithm of the matrix product is probably the fastest, by shape and kind of device.

These are rules and not a model of times, as few things decide. A product with few rows or columns
is bound by memory, so one read of the matrix is best, until its sums no longer fit registers.
Units that few devices have come next, where the algorithm for them says that it pays. Otherwise
there is one best algorithm for each kind of device. All numbers were measured at 80 shapes, in
public calls, on an NVIDIA H200 and on Intel Xeons of 2 and of 16 cores; those of `direct` and of
one thread on an AMD EPYC (Zen 5).
"""

from __future__ import annotations

from collections.abc import Iterable

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_one_thread
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.thin.lines import is_along, is_other_along, side_of

FEW = 8
"""Most rows or columns with which one read of the matrix is the fastest: on CPUs, and of short
matrices."""
FEW_ALONG, FEW_TURNED, FEW_ACROSS = 10, 10, 5
"""The same on GPUs: where the lines of both factors lie along k; where only those of the matrix do,
so that the other one is read from few banks of a cache; where lines of the matrix lie across k."""
FEW_TURNED_LARGE, FEW_ACROSS_LARGE, FEW_NONE_ALONG_LARGE = 7, 4, 1
"""The same for a matrix that no cache holds: where only its own lines lie along k; where only those
of the other factor do; where those of neither do."""
MEDIUM, FEW_ACROSS_MEDIUM = 1 << 22, 8
"""Elements of a matrix that caches of a GPU hold well: the same, if the few lines lie along k."""
SHORT = 1 << 20
"""Elements of a matrix that one launch of a GPU reads fast, however few groups share it."""
CACHED, FEW_OF_CACHED = 1 << 19, 4
"""Elements of a matrix that the caches of a CPU's cores hold: below that, packed panels are better
from a few rows on."""
LARGE, FEW_OF_LARGE = 1 << 23, 16
"""Elements of a matrix that no cache holds: where its lines lie across k, packing panels costs a
CPU more than another read."""
MATRIX = 1 << 12
"""Least elements of a matrix of a stack that are worth starting a group, or an item of a CPU."""
IN_CACHE = 1 << 21
"""Bytes of both factors from which the caches of a CPU's core do not hold what it reads of them, so
that packing pays."""
PRODUCT = 1 << 10
"""Least multiplications in a product of a stack that are worth starting an item of a CPU."""
COLUMNS_ALONE, ROWS_ALONE, ROWS_COPIED_ALONE = (1, 6, 12), (1, 1, 4), (4, 12, 12)
"""Most columns, or rows, with which one read of the matrix is the fastest on one thread: if it has
fewer than `MATRIX` elements, fewer than `CACHED`, and more. The last are rows of real numbers, for
matrices that `direct` would copy."""


def ranked(problem: GemmProblem, device: Device, special: Iterable[str] = ()) -> tuple[str, ...]:
    """Return names of algorithms, the fastest first; some may not support the problem.

    `special` ones are for units that the device has, and pay.
    """
    if problem.is_integer:
        few = device.kind == "cpu" or min(problem.m, problem.n) <= FEW
        return ("direct", *(("naive", "tiled") if few else ("tiled", "naive")))
    general = ("packed", "blocked") if device.kind == "cpu" else ("blocked", "tiled")
    names = [*special, *general, "gemv", "naive", "tiled"]
    if device.kind == "cpu" and _is_small(problem, device):
        names.insert(0, "direct")
    if _is_few(problem, device):
        names.insert(0, "gemv")
    return tuple(dict.fromkeys(names))


def _is_small(problem: GemmProblem, device: Device) -> bool:
    """Return whether `direct` is the fastest on a CPU, unless there are few rows or columns."""
    tiny = problem.m * problem.n * problem.k < PRODUCT
    if tiny and problem.batch > 1 and not is_one_thread(device):
        return False
    # Threads that read B in place each read all of it.
    most = 2 * IN_CACHE / max(2, device.compute_units)
    return (problem.m + problem.n) * problem.k * problem.dtype.itemsize < most


def _is_few(problem: GemmProblem, device: Device) -> bool:
    few, lines = sorted((problem.m, problem.n))
    if is_one_thread(device):
        size = (lines * problem.k >= MATRIX) + (lines * problem.k >= CACHED)
        if side_of(problem) == "a":
            return few <= COLUMNS_ALONE[size]
        if problem.trans_b or problem.is_complex:
            return few * problem.components <= ROWS_COPIED_ALONE[size]
        return few <= ROWS_ALONE[size]
    if problem.batch > 1 and lines * problem.k < MATRIX:
        return False
    if device.kind != "cpu":
        most = _most_few(problem)
        return few <= (max(FEW, most) if lines * problem.k <= SHORT else most)
    if lines * problem.k < CACHED:
        return few <= FEW_OF_CACHED
    if not is_along(problem) and lines * problem.k >= LARGE:
        return few <= FEW_OF_LARGE
    return few <= FEW


def _most_few(problem: GemmProblem) -> int:
    """Return with how many rows or columns one read of the matrix is the fastest on a GPU."""
    matrix = max(problem.m, problem.n) * problem.k
    large = matrix >= LARGE
    if not is_along(problem):
        other = is_other_along(problem)
        if large:
            return FEW_ACROSS_LARGE if other else FEW_NONE_ALONG_LARGE
        return FEW_ACROSS_MEDIUM if other and matrix <= MEDIUM else FEW_ACROSS
    if is_other_along(problem):
        return FEW_ALONG
    return FEW_TURNED_LARGE if large else FEW_TURNED
