"""The right results of filters, by their definition, with NumPy; and how far others may be off."""

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
)
from opencl_lab.lab.ops.conv2d.expected import extend
from opencl_lab.ops.filters.numbers import is_whole
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, Window, WindowProblem

Array = np.ndarray[Any, Any]

CHUNK = 1 << 22
"""Values of windows that are ordered together."""


def filtered(problem: FilterProblem, image: Array, weights: Array | None) -> Array:
    """Return the right result of a problem; sums of products in float64, or modulo 2^64."""
    if not image.size:
        return np.empty(problem.shape, problem.result_type)
    if isinstance(problem, WindowProblem):
        return _ranked(problem, image)
    assert isinstance(problem, LinesProblem)
    with np.errstate(all="ignore"):
        return _along_lines(problem, image, weights).astype(problem.result_type)


def _continued(problem: FilterProblem, x: Array, window: Window) -> Array:
    """Return an array with what lies beyond its edges along the axis of a window."""
    n = x.shape[window.axis]
    beyond = np.arange(-window.before, n + window.size - 1 - window.before)
    places = extend(beyond, n, window.mode)
    found = np.take(x, places, window.axis)
    if (places < 0).any():
        np.moveaxis(found, window.axis, 0)[places < 0] = problem.outside(x.dtype)["cval_0"]
    return found


def _along_lines(problem: LinesProblem, image: Array, weights: Array | None) -> Array:
    """Return the sum of all terms, or the root of the sum of their squares."""
    total: Any = 0
    first = 0
    for term in problem.terms:
        x = image
        for window in term:
            line = None if weights is None else weights[first : first + window.size]
            first += window.size
            x = _along_line(problem, x, window, line)
        total = total + (x * x if problem.root else x)
    return np.asarray(np.sqrt(total) if problem.root else total)


def _along_line(problem: LinesProblem, x: Array, window: Window, line: Array | None) -> Array:
    """Return the filter along an axis, as integers where the result is."""
    n, whole = x.shape[window.axis], is_whole(problem.sum_type)
    sums = problem.reduce in ("sum", "mean")
    if sums:
        x = x.astype(np.int64).astype(np.uint64) if whole else x.astype(np.float64)
    padded = np.moveaxis(_continued(problem, x, window), window.axis, 0)
    parts = [padded[place : place + n] for place in range(window.size)]
    if problem.reduce == "sum":
        assert line is not None
        found = _products(parts, line.astype(x.dtype), window.symmetry)
    elif problem.reduce == "mean":
        added = sum(parts[1:], parts[0])
        found = (added.view(np.int64) if whole else added) / window.size
    else:
        least = np.minimum if problem.reduce == "min" else np.maximum
        found = parts[0]
        for part in parts[1:]:
            found = least(found, part)
    if is_whole(problem.result_type):
        if found.dtype.kind == "f":
            found = np.trunc(found).astype(np.int64)
        found = found.astype(problem.result_type)
    return np.moveaxis(found, 0, window.axis)


def _products(parts: list[Array], line: Array, symmetry: int) -> Array:
    """Return the sum of products in the order of SciPy, which the last bit of a cut one needs."""
    middle, found = len(parts) // 2, parts[-1] * line[-1]
    if symmetry and line.dtype.kind != "u":
        found[...] = parts[middle] * line[middle]
        for place in range(middle):
            other = parts[len(parts) - 1 - place]
            pair = parts[place] + other if symmetry > 0 else parts[place] - other
            found += pair * line[place]
        return np.asarray(found)
    for part, weight in zip(parts[:-1], line[:-1], strict=True):
        found += part * weight
    return np.asarray(found)


def _ranked(problem: WindowProblem, image: Array) -> Array:
    """Return the values of a rank in full windows; NaN under a window is the result."""
    padded = image
    for window in problem.windows:
        padded = _continued(problem, padded, window)
    axes = tuple(window.axis for window in problem.windows)
    sizes = tuple(window.size for window in problem.windows)
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axes)
    result = np.empty(image.shape, image.dtype)
    rows = max(1, CHUNK // max(1, image[0].size * problem.places))
    for first in range(0, len(image), rows):
        values = windows[first : first + rows].reshape(-1, problem.places)
        found = np.partition(values, problem.rank, axis=-1)[:, problem.rank]
        if image.dtype.kind == "f":
            found[np.isnan(values).any(axis=-1)] = np.nan
        result[first : first + rows] = found.reshape(result[first : first + rows].shape)
    return result


def compare(
    problem: FilterProblem, inputs: dict[str, Array], right: Array, given: Array
) -> Difference:
    """Compare a result with the right one, value by value.

    Sums of products in floating point are off by at most ``gamma * sum |w| |x|``, see `growth`, for
    all axes together, with a few roundings for each axis; sums of squares have the square root of
    the least number, too, as they may underflow. All else is to be equal.
    """
    if (given.shape, given.dtype) != (right.shape, right.dtype):
        return UNLIKE
    error, relative = errors_of(right.astype(np.float64), given.astype(np.float64))
    bound: Any = 0.0
    if problem.reduce in ("sum", "mean") and not is_whole(problem.result_type) and error.any():
        assert isinstance(problem, LinesProblem)
        weights = inputs.get("weights")
        sizes = np.abs(inputs["image"].astype(np.float64))
        with np.errstate(all="ignore"):
            sizes = _magnitudes(problem, sizes, weights)
            terms = problem.taps + 4 * sum(map(len, problem.terms)) + 8
            least = float(np.finfo(problem.sum_type).tiny)
            bound = growth(terms, problem.sum_type) * sizes
            bound = bound + (np.sqrt(terms * least) if problem.root else terms * least)
    largest = [float(np.max(values, initial=0)) for values in (error, relative)]
    return Difference(*largest, error_over_bound=largest_share(error, bound))


def _magnitudes(problem: LinesProblem, image: Array, weights: Array | None) -> Array:
    """Return the sums of all magnitudes: of numbers that are not negative, by such weights."""
    kinds: dict[str, Any] = dict.fromkeys(
        ("dtype", "result_type", "sum_type"), np.dtype(np.float64)
    )
    terms = tuple(
        tuple(replace(window, symmetry=max(window.symmetry, 0)) for window in term)
        for term in problem.terms
    )
    cval = abs(problem.cval[0]), 0
    other = replace(problem, **kinds, terms=terms, root=False, cval=cval)
    return _along_lines(other, image, None if weights is None else np.abs(weights))
