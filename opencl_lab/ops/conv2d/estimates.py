"""Estimated times of a convolution on the threads of a CPU: see `opencl_lab.ops.estimates`."""

from __future__ import annotations

import math

from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.rolling import is_separated, pays
from opencl_lab.ops.estimates import VECTOR_BYTES, on_threads

# A vector of results, and each of its products.
ROLLING_NS = 1.2, 0.17
ROLLING_LINES_NS = 1.2, 0.23  # with a row and a column
REGISTER_NS = 1.6, 0.22
SEPARABLE_NS = 2.0, 0.3
CONVERT_NS = 25.0
"""To convert a vector from another type than that of the sums, and back."""
WIDE_NS = 2.0
"""A product whose sum takes 128 bits."""
MANY_TAPS = 49
"""Weights from which on two short filters beat one in `register`: 7 x 7 was the first to gain."""


def serial_us(problem: Conv2dProblem) -> float:
    """Return the microseconds on one thread."""
    if not pays(problem):
        return parallel_us(problem, 1)
    separated = is_separated(problem)
    return _us(problem, ROLLING_LINES_NS if separated else ROLLING_NS, separated)


def parallel_us(problem: Conv2dProblem, units: int) -> float:
    """Return the microseconds on `units` threads."""
    separable = problem.separable and math.prod(problem.filter_shape) >= MANY_TAPS
    alone = _us(problem, SEPARABLE_NS if separable else REGISTER_NS, separable)
    return on_threads(alone, units)


def _us(problem: Conv2dProblem, nanoseconds: tuple[float, float], separable: bool) -> float:
    if problem.long_sums:
        return 1e-3 * WIDE_NS * problem.products
    rows, columns = problem.filter_shape
    taps = rows + columns if separable else rows * columns
    vectors = math.prod(problem.result_shape) * problem.sum_type.itemsize / VECTOR_BYTES
    each = nanoseconds[0] + nanoseconds[1] * taps
    if problem.dtype != problem.sum_type:
        each += CONVERT_NS
    return 1e-3 * vectors * each
