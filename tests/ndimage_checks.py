"""Filters of SciPy beside ours: calls, random arrays, how near results are."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_lab import ndimage

scipy_ndimage = pytest.importorskip("scipy.ndimage")


def both(name, x, argument, **options):
    """Return SciPy's result and ours."""
    given = () if argument is None else (argument,)
    return [getattr(home, name)(x, *given, **options) for home in (scipy_ndimage, ndimage)]


def is_near(found, right):
    """Return whether the results are as near as those of two orders of summation."""
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    if right.dtype.kind in "biu":
        return np.array_equal(found, right)
    return np.abs(found - right).max() <= 10 * np.finfo(right.dtype).eps * np.abs(right).max()


def numbers(rng, dtype, shape=(23, 37)):
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        parts = rng.standard_normal((2, *shape))
        return (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)
    return rng.integers(0, 120, shape).astype(dtype)
