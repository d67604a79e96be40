"""How long a convolution takes on a CPU, to choose between one thread and all."""

from __future__ import annotations

import math

import numpy as np

from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.rolling import RESIDENT, Rolling, is_separated
from opencl_lab.ops.estimates import on_threads

VECTOR_BYTES = 64
# Nanoseconds of a thread on an EPYC 9005, for a vector of results and for each of its products.
ROLLING_NS = 1.2, 0.17
ROLLING_LINES_NS = 1.2, 0.23  # with a row and a column
REGISTER_NS = 1.6, 0.22
SEPARABLE_NS = 2.0, 0.3
HALF_NS = 25.0
"""Further nanoseconds to convert a vector from half precision and back."""
MANY_TAPS = 49
"""Weights from which on two short filters beat one in `register`: 7 x 7 was the first to gain."""


def serial_us(problem: Conv2dProblem) -> float:
    """Return the microseconds of one thread."""
    if not rolls(problem):
        return parallel_us(problem, 1)
    separated = is_separated(problem)
    return _us(problem, ROLLING_LINES_NS if separated else ROLLING_NS, separated)


def parallel_us(problem: Conv2dProblem, units: int) -> float:
    """Return the microseconds of so many threads, without the launch."""
    separable = problem.separable and math.prod(problem.filter_shape) >= MANY_TAPS
    alone = _us(problem, SEPARABLE_NS if separable else REGISTER_NS, separable)
    return on_threads(alone, units)


def rolls(problem: Conv2dProblem) -> bool:
    """Return whether `rolling` is the fastest on one thread."""
    return problem.work.bytes <= RESIDENT and Rolling.too_large(problem) is None


def _us(problem: Conv2dProblem, nanoseconds: tuple[float, float], separable: bool) -> float:
    rows, columns = problem.filter_shape
    taps = rows + columns if separable else rows * columns
    vectors = math.prod(problem.result_shape) * problem.sum_type.itemsize / VECTOR_BYTES
    each = nanoseconds[0] + nanoseconds[1] * taps
    if problem.dtype == np.float16:
        each += HALF_NS
    return 1e-3 * vectors * each
