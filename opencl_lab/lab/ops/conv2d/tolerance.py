"""Error bounds of convolutions, value by value."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import (
    UNLIKE,
    Difference,
    errors_of,
    growth,
    over_blocks,
    shares_of_bound,
)
from opencl_lab.lab.ops.conv2d.expected import CHUNK, extend
from opencl_lab.lab.ops.conv2d.expected_fft import correlate_soon
from opencl_lab.ops.conv2d.problem import Conv2dProblem

Array = np.ndarray[Any, Any]

COMPARED = 1 << 16
"""Number of values that are compared together, so that they stay in the cache."""
FEW = 1 / 32
"""Up to this fraction of values, sums of magnitudes are formed one by one."""
FEW_PRODUCTS = 1 << 22
"""Largest number of terms to gather: one takes as long as many of a transform."""


def compare(
    problem: Conv2dProblem, inputs: dict[str, Array], right: Array, given: Array
) -> Difference:
    """Compare a result with the expected one, value by value.

    In any order of summation, the error is at most ``gamma * sum |w| |p|``, see `growth`.
    A few roundings are added for a separable filter. Rounded integers may differ by 1 more;
    integers that were summed in integers must be equal.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return UNLIKE
    bounds = _Bounds(problem, inputs)
    flat_right, flat_given = right.reshape(-1), given.reshape(-1)
    wraps = problem.dtype.kind in "iu" and not problem.saturate  # 255 and 0 are neighbours
    period = 2.0 ** (8 * problem.dtype.itemsize) if wraps else None

    def of_block(first: int) -> tuple[Array, Array, float]:
        block = slice(first, first + COMPARED)
        reference = flat_right[block].astype(np.float64)
        error, relative = errors_of(reference, flat_given[block].astype(np.float64), period)
        return error, relative, bounds.largest_share(first, reference, error)

    return over_blocks(range(0, right.size, COMPARED), of_block)


class _Bounds:
    """The error bounds of the values of a result."""

    def __init__(self, problem: Conv2dProblem, inputs: dict[str, Array]):
        self.problem, self.inputs = problem, inputs
        self._once = Lock()
        self._known = 0.0
        self.gamma, self.least = _error_bound(problem)
        self.floating = problem.dtype.kind == "f"
        rounds = self.floating and problem.dtype != problem.sum_type
        self.narrow = float(np.finfo(problem.dtype).eps) if rounds else 0.0

    def largest_share(self, first: int, reference: Array, error: Array) -> float:
        """Return the largest error relative to its bound, of values from index `first` on.

        Only values whose ratio may exceed all ratios found before are examined.
        """
        known = self._known
        with np.errstate(invalid="ignore", over="ignore"):
            fixed = self.least + self.narrow * np.abs(reference)
            # A sum of magnitudes is no less than the sum, unless that wrapped around.
            sums = np.abs(reference) if self.floating else 0.0
            shares = shares_of_bound(error, fixed + self.gamma * sums)
            (places,) = np.nonzero(shares > known)
            if places.size and self.gamma:
                terms = places.size * math.prod(self.problem.filter_shape)
                many = places.size > FEW * error.size or terms > FEW_PRODUCTS
                sums = self._sums[first + places] if many else self._each(first + places)
                lost = ~np.isfinite(sums)
                if many and lost.any():  # sums in float32 overflow where those in float64 do not
                    sums = sums.astype(np.float64)
                    sums[lost] = self._each(first + places[lost])
                shares = shares_of_bound(error[places], fixed[places] + self.gamma * sums)
        found = float(np.max(shares, initial=0))
        # If another thread has just found a larger ratio, more values are examined than needed.
        self._known = max(self._known, found)
        return found

    @property
    def _sums(self) -> Array:
        with self._once:  # of threads that need them at the same time
            return self._all

    @cached_property
    def _all(self) -> Array:
        return all_magnitudes(self.problem, self.inputs).reshape(-1)

    def _each(self, places: Array) -> Array:
        return magnitudes(self.problem, self.inputs, places)


def all_magnitudes(problem: Conv2dProblem, inputs: dict[str, Array]) -> Array:
    """Return the sums ``sum |w| |p|`` of all values of the result, in its shape.

    They are the result of another convolution, rounded to float32 unless values are float64.
    """
    kind = np.dtype(np.float64 if problem.sum_type == np.float64 else np.float32)
    other = replace(problem, dtype=kind, accumulator=kind, cval=abs(problem.cval), saturate=False)
    image, weights = (np.abs(inputs[name].astype(kind)) for name in ("image", "weights"))
    return correlate_soon(other, image, weights)


def magnitudes(problem: Conv2dProblem, inputs: dict[str, Array], places: Array) -> Array:
    """Return the sums ``sum |w| |p|`` of some values of the result, by their flat indices."""
    weights = np.abs(inputs["weights"].astype(np.float64))
    weights = (weights[::-1, ::-1] if problem.flip else weights).reshape(-1)
    taps = np.indices(problem.filter_shape).reshape(2, -1)
    boundary, cval = problem.extension
    sums = np.zeros(len(places))
    at_once = max(1, CHUNK // len(weights))
    for first in range(0, len(places), at_once):
        part = places[first : first + at_once]
        image, y, x, channel = np.unravel_index(part, problem.result_shape)
        rows, columns = (
            extend(start[:, None] + offset + tap, size, boundary)
            for start, offset, tap, size in zip(
                (y, x), problem.offset, taps, (problem.height, problem.width), strict=True
            )
        )
        if inputs["image"].size:
            pixels = inputs["image"][image[:, None], rows, columns, channel[:, None]]
        else:
            pixels = np.zeros(rows.shape)
        outside = np.minimum(rows, columns) < 0
        sums[first : first + at_once] = (
            np.abs(np.where(outside, cval, pixels.astype(np.float64))) @ weights
        )
    return sums


def _error_bound(problem: Conv2dProblem) -> tuple[float, float]:
    """Return the relative error bound of a sum of magnitudes, and the absolute tolerance.

    The rounding of a sum to a narrower type is added to these.
    """
    if problem.sum_type.kind == "i":
        return 0.0, 0.0
    terms = problem.filter_height * problem.filter_width + 12
    gamma = growth(terms, problem.sum_type)
    least = terms * float(np.finfo(problem.sum_type).tiny)
    if problem.dtype.kind in "iu":
        return gamma, least + 1.0
    return gamma, least + (
        float(np.finfo(problem.dtype).tiny) if problem.dtype == np.float16 else 0.0
    )
