"""Error bounds of convolutions, value by value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import (
    UNLIKE,
    Difference,
    errors_of,
    growth,
    largest_share,
    over_blocks,
)
from opencl_lab.lab.ops.conv2d.expected_fft import correlate_soon
from opencl_lab.ops.conv2d.problem import Conv2dProblem

Array = np.ndarray[Any, Any]

COMPARED = 1 << 16
"""Number of values that are compared together, so that they stay in the cache."""


def compare(
    problem: Conv2dProblem, inputs: dict[str, Array], right: Array, given: Array
) -> Difference:
    """Compare a result with the expected one, value by value.

    In any order of summation, the error is at most ``gamma * sum |w| |p|``, see `growth`.
    A few roundings are added for a separable filter, and that of the sum to a narrower type.
    Rounded integers may differ by 1 more; integers that were summed in integers must be equal.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return UNLIKE
    bounds = _bounds(problem, inputs, right, np.array_equal(right, given))
    right, given, bounds = right.reshape(-1), given.reshape(-1), bounds.reshape(-1)
    wraps = problem.dtype.kind in "iu" and not problem.saturate  # 255 and 0 are neighbours
    period = 2.0 ** (8 * problem.dtype.itemsize) if wraps else None

    def of_block(first: int) -> tuple[Array, Array, float]:
        block = slice(first, first + COMPARED)
        reference, found = (array[block].astype(np.float64) for array in (right, given))
        error, relative = errors_of(reference, found, period)
        return error, relative, largest_share(error, bounds[block])

    return over_blocks(range(0, right.size, COMPARED), of_block)


def _bounds(problem: Conv2dProblem, inputs: dict[str, Array], right: Array, equal: bool) -> Array:
    """Return the largest errors of the values of a result; zeros if it is `equal`."""
    if problem.sum_type.kind == "i" or equal:
        return np.broadcast_to(0.0, right.shape)
    terms = problem.filter_height * problem.filter_width + 12
    least = terms * float(np.finfo(problem.sum_type).tiny)
    with np.errstate(invalid="ignore", over="ignore"):
        bounds = growth(terms, problem.sum_type) * magnitudes(problem, inputs)
        if problem.dtype.kind in "iu":
            least += 1.0
        elif problem.dtype != problem.sum_type:
            kept = np.finfo(problem.dtype)
            bounds = bounds + float(kept.eps) * np.abs(right.astype(np.float32))
            least += float(kept.tiny)
        return bounds + np.float64(least)


def magnitudes(problem: Conv2dProblem, inputs: dict[str, Array]) -> Array:
    """Return the sums ``sum |w| |p|`` of all values of the result, in its shape.

    They are the result of another convolution, in float32 unless values are float64 or so large
    that sums overflow.
    """
    for kind in map(np.dtype, (np.float32, np.float64)):
        if kind == np.float32 and problem.sum_type == np.float64:
            continue
        other = replace(
            problem, dtype=kind, accumulator=kind, cval=abs(problem.cval), saturate=False
        )
        image, weights = (np.abs(inputs[name].astype(kind)) for name in ("image", "weights"))
        sums = correlate_soon(other, image, weights)
        if np.isfinite(sums).all():
            break
    return sums
