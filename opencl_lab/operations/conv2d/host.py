"""The convolution by NumPy: what is right, and how far from it a result may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.operation import Difference
from opencl_lab.operations.conv2d.problem import Conv2dProblem

__all__ = ["compare", "coordinates", "correlate", "extend", "rounded", "window_of"]

Array = np.ndarray[Any, Any]

CHUNK = 1 << 15
"""Values of a result that are summed together, so that they stay in the cache."""


def extend(places: Array, size: int, boundary: str) -> Array:
    """Return the coordinates whose values continue an image, or -1 for cval.

    Parameters
    ----------
    places : numpy.ndarray of int
        Coordinates, also negative ones and those from `size` on.
    size : int
        Pixels of the image along this axis.
    boundary : str
        As `scipy.ndimage` names it.
    """
    if boundary == "constant" or not size:
        return np.where((places >= 0) & (places < size), places, -1)
    if boundary == "nearest":
        return places.clip(0, size - 1)
    if boundary == "wrap":
        return places % size
    period = 2 * size if boundary == "reflect" else max(2 * size - 2, 1)
    turned = places % period
    back = period - 1 - turned if boundary == "reflect" else period - turned
    return np.where(turned < size, turned, back)


def coordinates(problem: Conv2dProblem) -> tuple[Array, Array]:
    """Return the rows and the columns of the image, continued, that windows are made of."""
    along = zip(
        problem.result_shape[1:3],
        problem.filter_shape,
        problem.offset,
        (problem.height, problem.width),
        strict=True,
    )
    row_of, column_of = (
        extend(np.arange(out + taps - 1) + offset, size, problem.extension[0])
        for out, taps, offset, size in along
    )
    return row_of, column_of


def correlate(problem: Conv2dProblem, images: Array, weights: Array) -> Array:
    """Return the result of a problem, summed in float64, or in int64 for integer weights."""
    wide = np.dtype(np.int64 if problem.sum_type.kind == "i" else np.float64)
    result = np.empty(problem.result_shape, problem.dtype)
    if not result.size:
        return result
    if problem.flip:
        weights = weights[::-1, ::-1]
    row_of, column_of = coordinates(problem)
    cval = problem.extension[1]
    rows = max(1, CHUNK // (problem.out_width * problem.channels))
    with np.errstate(all="ignore"):
        for image, target in zip(images, result, strict=True):
            for first in range(0, problem.out_height, rows):
                part = target[first : first + rows]
                needed = row_of[first : first + len(part) + problem.filter_height - 1]
                window = window_of(image, needed, column_of, wide, cval)
                part[...] = rounded(problem, _sums(window, weights.astype(wide), part.shape))
    return result


def window_of(image: Array, rows: Array, columns: Array, wide: np.dtype[Any], cval: float) -> Array:
    """Return these rows and columns of an image, with cval where they are negative."""
    if image.size:
        found: Array = image[rows[:, None], columns].astype(wide)
    else:
        found = np.empty((len(rows), len(columns), image.shape[-1]), wide)
    if min(rows.min(), columns.min()) < 0:
        found[(rows < 0)[:, None] | (columns < 0)] = cval
    return found


def _sums(window: Array, weights: Array, shape: tuple[int, ...]) -> Array:
    sums = np.zeros(shape, window.dtype)
    product = np.empty_like(sums)
    for (j, i), weight in np.ndenumerate(weights):
        np.multiply(window[j : j + shape[0], i : i + shape[1]], weight, out=product)
        sums += product
    return sums


def rounded(problem: Conv2dProblem, sums: Array) -> Array:
    """Return sums in the type of the result, by the rules of the operation."""
    if problem.dtype.kind == "f":
        return sums
    if sums.dtype.kind == "f":
        sums = np.rint(sums)
    if problem.saturate:
        limits = np.iinfo(problem.dtype)
        sums = np.where(sums > limits.min, np.minimum(sums, limits.max), limits.min)
    else:  # no 64-bit integer can hold a float so large, whose low bits are zero
        sums = np.where(np.abs(sums) < 2.0**62, sums, 0)
    return sums.astype(np.int64).astype(problem.dtype)


def compare(
    problem: Conv2dProblem, inputs: dict[str, Array], right: Array, given: Array
) -> Difference:
    """Compare a result with the right one, value by value.

    Whatever the order of the sum, its error is at most ``gamma * sum |w| |p|`` with
    ``gamma = n u / (1 - n u)`` for n products and unit roundoff u (N. Higham, "Accuracy
    and Stability of Numerical Algorithms", section 3.1). A few roundings are added for a
    filter that was split into two vectors. Integers may be one step further, where rounding
    tips over; those that were summed in integers must be equal.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return Difference(np.inf, np.inf, False)
    gamma, least = _error_bound(problem)
    limits = np.finfo(right.dtype) if right.dtype.kind == "f" else None
    narrow = 0.0 if problem.dtype == problem.sum_type or limits is None else float(limits.eps)
    max_abs = max_rel = 0.0
    ok = True
    flat_right, flat_given = right.reshape(-1), given.reshape(-1)
    for first in range(0, right.size, 1 << 16):
        part = slice(first, first + (1 << 16))
        reference, value = flat_right[part].astype(np.float64), flat_given[part].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(reference - value)
            if limits is None and not problem.saturate:  # 255 and 0 are neighbours
                error = np.minimum(error, 2.0 ** (8 * right.dtype.itemsize) - error)
            same = (reference == value) | (np.isnan(reference) & np.isnan(value))
            error[same] = 0
            error[np.isnan(error)] = np.inf
            relative = error / (np.abs(reference) + 1e-12)
            relative[np.isnan(relative)] = np.inf
            if ok:
                excess = error - least - narrow * np.abs(reference)
                # A sum of magnitudes is no less than the sum (unless that wrapped around), so
                # that few have to be made.
                known = np.abs(reference) if limits is not None else 0.0
                (places,) = np.nonzero(~same & ~(excess <= gamma * known))
                ok = bool(np.isfinite(error).all()) and bool(
                    (excess[places] <= gamma * magnitudes(problem, inputs, first + places)).all()
                )
        max_abs = max(max_abs, float(np.max(error, initial=0)))
        max_rel = max(max_rel, float(np.max(relative, initial=0)))
    return Difference(max_abs, max_rel, ok)


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
    """Return the error of a sum relative to that of its magnitudes, and what is always allowed.

    The rounding of a sum to a narrower type comes on top.
    """
    if problem.sum_type.kind == "i":
        return 0.0, 0.0
    limits = np.finfo(problem.sum_type)
    taps = problem.filter_height * problem.filter_width
    growth = (taps + 12) * float(limits.eps) / 2
    gamma = growth / (1 - growth) if growth < 0.5 else 2 * growth
    if problem.sum_type == np.float64:  # the right result has this error too
        gamma *= 2
    least = (taps + 12) * float(limits.tiny)
    if problem.dtype.kind in "iu":
        return gamma, least + 1.0
    return gamma, least + (
        float(np.finfo(problem.dtype).tiny) if problem.dtype == np.float16 else 0.0
    )
