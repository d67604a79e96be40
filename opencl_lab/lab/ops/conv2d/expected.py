"""The expected result of a convolution, by its definition, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.ops.conv2d.problem import Conv2dProblem

Array = np.ndarray[Any, Any]

CHUNK = 1 << 15
"""Number of values that are summed together, so that they stay in the cache."""


def extend(places: Array, size: int, boundary: str) -> Array:
    """Map coordinates beyond an axis of length `size` to those of the boundary; -1 is cval.

    Coordinates may be negative, or at least `size`. Boundaries are those of `scipy.ndimage`.
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
    """Return the rows and columns of the extended image that windows consist of."""
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
    """Return the result of a problem, summed in float64, or exactly for integer weights."""
    exact = np.dtype(object if problem.long_sums else np.int64)
    wide = exact if problem.sum_type.kind == "i" else np.dtype(np.float64)
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
    """Return rows and columns of an image, with cval for negative ones."""
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
    real = sums.dtype.kind == "f"
    if real:
        sums = np.rint(sums)
    if problem.saturate:
        limits = np.iinfo(problem.dtype)
        sums = np.where(sums > limits.min, np.minimum(sums, limits.max), limits.min)
    elif real:  # no 64-bit integer can hold a float so large, whose low bits are zero
        sums = np.where(np.abs(sums) < 2.0**62, sums, 0)
    return sums.astype(np.int64).astype(problem.dtype)
