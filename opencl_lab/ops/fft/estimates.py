"""Estimated times of transforms on the threads of a CPU: see `opencl_lab.ops.estimates`.

They are fitted where the choice is close, at 30 to 150 microseconds.
"""

from __future__ import annotations

import math

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.fft.passes.costs import operations
from opencl_lab.ops.fft.passes.factors import (
    convolution_length,
    prime_factors,
    radices_of,
)
from opencl_lab.ops.fft.passes.forms import NARROW
from opencl_lab.ops.fft.passes.row_passes import (
    LARGER,
    LONGEST_HALVES,
    LONGEST_LARGER,
    MOST_ROWS,
)
from opencl_lab.ops.fft.passes.serial import share_rows
from opencl_lab.ops.fft.passes.vector import LONGEST, VectorPlanner
from opencl_lab.ops.fft.problem import DftProblem

# For each complex number in single precision; double takes twice as long.
FLOP_NS = 0.010
"""An operation of a butterfly."""
PASS_NS = 0.03
"""To read and write in a pass."""
POINT_NS = 0.10
"""To read and write the user's arrays."""
HALVES_NS = (0.15, 1.6)
"""To compute the spectrum of a packed real row, or the reverse: in the launch of the transform, on
one thread, and in a launch of its own."""
CHIRPS_NS = (0.2, 4.5)
"""To multiply by chirps in a convolution: in a launch of whole rows, or in several launches."""
PAIRS_NS = 2.0
"""To pack and scale two real rows of an odd length, and to separate their spectra."""
QUICK = 5
"""Largest prime factor of lengths whose passes for one thread are quick to build. Others take up
to a second, unless they share a program. Of convolutions many lengths share one."""
SHARED = 1.2
"""Work of all threads as a multiple of that of one, whose vectors are longer."""
FURTHER_LAUNCH_US = 4.0
"""A launch on threads that follows another one of a transform, for each thread that it wakes."""
GROUP_NS, TERM_NS = 200.0, 0.065
"""Direct sums: to begin with 16 frequencies of a row; a term, half as long of a real signal."""
NAIVE = 15.0
"""Time of plain direct sums, which share nothing, as a multiple of that of others."""


def serial_us(problem: DftProblem) -> float:
    """Return the microseconds of fast transforms on one thread."""
    if problem.inner > 1 and problem.n > LONGEST:
        return math.inf  # columns become rows first, in launches that wait for memory
    n = _length(problem)
    passes = VectorPlanner.has_passes(n, _rows(problem))
    if n and passes and max(prime_factors(n) or (1,)) > QUICK and not _shares_program(problem):
        return math.inf
    return _work_us(problem, alone=True, whole_rows=True)


def parallel_us(problem: DftProblem, units: int) -> float:
    """Return the microseconds of fast transforms on `units` threads."""
    n, real = problem.n, problem.kind != "c2c"
    further = 4 if real and n % 2 else int(real)
    rows = _rows(problem)
    whole_rows = share_rows(rows, units)
    further += 0 if whole_rows or VectorPlanner.has_passes(_length(problem), rows) else 4
    work = _work_us(problem, alone=False, whole_rows=whole_rows)
    return work / units + FURTHER_LAUNCH_US * units * further


def direct_us(problem: DftProblem, algorithm: str) -> float:
    """Return the microseconds of direct sums on one thread."""
    groups = ceil_divide(problem.bins, 16) * problem.count
    sums = GROUP_NS * groups + TERM_NS * problem.terms * (1 if problem.kind == "c2c" else 0.5)
    sums *= NAIVE if algorithm == "direct-naive" else 1
    return 1e-3 * sums * problem.real.itemsize / 4


def _shares_program(problem: DftProblem) -> bool:
    """Return whether a length with factors of 7, 11 or 13 shares a program on one thread."""
    n, real = _length(problem), problem.kind != "c2c"
    longest = LONGEST_HALVES if real else LONGEST_LARGER
    few = problem.inner == 1 and problem.count <= MOST_ROWS and n <= longest
    filled = n % 4 == 0 or (n % 2 == 0 and n <= NARROW[2])  # vectors over the points
    return few and filled and max(prime_factors(n) or (n,)) <= LARGER[-1][-1]


def _length(problem: DftProblem) -> int:
    """Return the length of the complex transforms."""
    return problem.n if problem.kind == "c2c" or problem.n % 2 else problem.n // 2


def _rows(problem: DftProblem) -> int:
    """Return the number of complex transforms: two real rows of an odd length share one."""
    pairs = problem.kind != "c2c" and problem.n % 2
    return ceil_divide(problem.count, 2) if pairs else problem.count


def _work_us(problem: DftProblem, alone: bool, whole_rows: bool) -> float:
    n, rows, around = _length(problem), _rows(problem), 0.0
    if not n * rows:
        return 0.0
    if problem.kind != "c2c":
        around = PAIRS_NS if problem.n % 2 else HALVES_NS[not alone]
    each = around + _transform_ns(n, rows, whole_rows) * (1 if alone else SHARED)
    return 1e-3 * n * rows * each * problem.real.itemsize / 4


def _transform_ns(n: int, rows: int, whole_rows: bool) -> float:
    """Return the nanoseconds for each number of a complex transform of length `n`."""
    if VectorPlanner.has_passes(n, rows):
        return POINT_NS + sum(FLOP_NS * operations(radix) + PASS_NS for radix in radices_of(n, 8))
    m = convolution_length(n)
    return m / n * (2 * _transform_ns(m, rows, whole_rows) + CHIRPS_NS[not whole_rows])
