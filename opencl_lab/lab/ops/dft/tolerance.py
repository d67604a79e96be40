"""Errors of transforms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import UNLIKE, Difference, largest_share

Array = np.ndarray[Any, Any]

BLOCK = 1 << 16
"""Number of values that are compared at a time, so that they stay in the cache."""


def compare(right: Array, given: Array, tolerance: float) -> Difference:
    """Compare each transform along the middle axis in the Euclidean norm.

    An error of a transform spreads over all its frequencies, so errors are relative to the norm
    of all. If the expected result is not finite throughout, the given one must not be either.
    """
    if given.shape != right.shape or given.dtype != right.dtype:
        return replace(UNLIKE, rel_l2=np.inf)
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    top, size, far = np.zeros((3, right.shape[0], 1, right.shape[2]))
    infinite_too = np.zeros(top.shape, bool)
    max_abs, max_rel, strange = np.float64(0), np.float64(0), False
    with np.errstate(invalid="ignore", over="ignore"):
        for rows, block in _blocks(right.shape):
            largest = np.max(np.abs(right[block].astype(wide)), axis=1, keepdims=True)
            np.maximum(top[rows], largest, out=top[rows])
            infinite_too[rows] |= ~np.all(np.isfinite(given[block]), axis=1, keepdims=True)
        infinite = ~np.isfinite(top)
        unit = np.where(infinite | (top == 0), 1, top)  # squares would overflow
        for rows, block in _blocks(right.shape):
            expected = right[block].astype(wide)
            error, magnitude = np.abs(expected - given[block]), np.abs(expected)
            size[rows] += np.sum((magnitude / unit[rows]) ** 2, axis=1, keepdims=True)
            far[rows] += np.sum((error / unit[rows]) ** 2, axis=1, keepdims=True)
            error = np.where(infinite[rows], 0, error)
            relative = error / (magnitude + 1e-12)
            finite = np.isfinite(relative)
            strange |= not finite.all()
            max_abs = np.maximum(max_abs, np.max(error))
            max_rel = np.maximum(max_rel, np.max(relative, where=finite, initial=0))
        size, far = np.sqrt(size), np.sqrt(far)
    far[infinite], size[infinite] = np.where(infinite_too, 0, np.inf)[infinite], 1
    worst = largest_share(far, tolerance * size)
    if strange and not worst <= 1:
        max_rel = np.float64(np.inf)
    rel_l2 = largest_share(far, size)
    return Difference(float(max_abs), float(max_rel), error_over_bound=worst, rel_l2=rel_l2)


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, tuple[slice, slice]]]:
    """Yield the blocks of an array: transforms, and their values."""
    batch, n, inner = shape
    if not batch * n * inner:
        return
    values = max(1, min(n, BLOCK // inner))
    transforms = max(1, BLOCK // (values * inner))
    for row in range(0, batch, transforms):
        rows = slice(row, row + transforms)
        for first in range(0, n, values):
            yield rows, (rows, slice(first, first + values))
