"""The right results of filters, by their definition, with NumPy; and how far others may be off."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.measuring.difference import (
    UNLIKE,
    Difference,
    errors_of,
    growth,
    largest_share,
    over_blocks,
)
from opencl_lab.lab.ops.conv2d.expected import extend
from opencl_lab.ops.filters.numbers import is_whole
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, Window, WindowProblem

Array = np.ndarray[Any, Any]

CHUNK = 1 << 16
"""Values that are computed together, so that they stay in the cache."""


def filtered(problem: FilterProblem, image: Array, weights: Array | None) -> Array:
    """Return the right result of a problem; sums of products in float64, or modulo 2^64."""
    if not image.size:
        return np.empty(problem.shape, problem.result_type)
    if isinstance(problem, WindowProblem):
        return _ranked(problem, image)
    assert isinstance(problem, LinesProblem)
    return _along_lines(problem, image, weights).astype(problem.result_type)


def _in_parts(parts: Callable[[Array], Array], x: Array, axis: int, step: int) -> Array:
    """Return what a function makes of parts of an array, on all processors."""
    before = (slice(None),) * axis

    def of_part(first: int) -> Array:
        with np.errstate(all="ignore"):
            return parts(x[(*before, slice(first, first + step))])

    with ThreadPoolExecutor(default_threads()) as threads:
        return np.concatenate(list(threads.map(of_part, range(0, x.shape[axis], step))), axis)


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
        with np.errstate(all="ignore"):
            total = total + (x * x if problem.root else x)
    return np.asarray(np.sqrt(total) if problem.root else total)


def _along_line(problem: LinesProblem, x: Array, window: Window, line: Array | None) -> Array:
    """Return the filter along an axis."""
    wide = x[None] if x.ndim == 1 else x
    moved = replace(window, axis=window.axis + wide.ndim - x.ndim)
    others = [axis for axis in range(wide.ndim) if axis != moved.axis]
    axis = max(others, key=lambda axis: wide.shape[axis])
    step = max(1, CHUNK * wide.shape[axis] // wide.size)
    found = _in_parts(lambda part: _along_one(problem, part, moved, line), wide, axis, step)
    return found.reshape(x.shape)


def _along_one(problem: LinesProblem, x: Array, window: Window, line: Array | None) -> Array:
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

    def ranked(part: Array) -> Array:
        values = part.reshape(*part.shape[: image.ndim], problem.places)
        found = np.partition(values, problem.rank, axis=-1)[..., problem.rank]
        if image.dtype.kind == "f":
            found[np.isnan(values).any(axis=-1)] = np.nan
        return np.asarray(found)

    return _in_parts(ranked, windows, 0, max(1, CHUNK * len(image) // windows.size))


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
    bounds = np.broadcast_to(0.0, right.shape)
    sums = problem.reduce in ("sum", "mean") and not is_whole(problem.result_type)
    if sums and not np.array_equal(right, given):
        assert isinstance(problem, LinesProblem)
        sizes = np.abs(inputs["image"].astype(np.float64))
        terms = problem.taps + 4 * sum(map(len, problem.terms)) + 8
        least = terms * float(np.finfo(problem.sum_type).tiny)
        with np.errstate(all="ignore"):
            sizes = _magnitudes(problem, sizes, inputs.get("weights"))
            bounds = growth(terms, problem.sum_type) * sizes
            bounds = bounds + (np.sqrt(least) if problem.root else least)
    right, given, bounds = right.reshape(-1), given.reshape(-1), bounds.reshape(-1)

    def of_block(first: int) -> tuple[Array, Array, float]:
        block = slice(first, first + CHUNK)
        pair = right[block].astype(np.float64), given[block].astype(np.float64)
        error, relative = errors_of(*pair)
        return error, relative, largest_share(error, bounds[block])

    return over_blocks(range(0, right.size, CHUNK), of_block)


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
