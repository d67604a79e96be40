"""What operations on keys share in the lab: random keys, exact comparison, macros for C."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.kernels import host_c_type
from opencl_lab.lab.measuring.difference import UNLIKE, Difference, errors_of

__all__ = ["ORDERS", "arranged", "c_defines", "exact", "random_keys"]

ORDERS = (
    "random",
    "sorted",
    "reversed",
    "nearly-sorted",
    "few-unique",
    "equal",
    "organ-pipe",
    "zipf",
)
ZIPF = 1.3
"""Exponent of skewed keys: the most frequent one is a quarter of them."""


def random_keys(
    shape: tuple[int, int], dtype: np.dtype[Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return keys over the whole range of the type, or normal floats, each row arranged in `order`.

    Parameters
    ----------
    shape : tuple of int
        Rows and keys of a row.
    dtype : numpy.dtype
    order : str
        One of `ORDERS`.
    rng : numpy.random.Generator
    """
    if dtype.kind == "f":
        drawn = np.float64 if dtype == np.float64 else np.float32
        keys = rng.standard_normal(shape, drawn).astype(dtype, copy=False)
    elif dtype == np.bool_:
        keys = rng.integers(0, 2, shape, np.bool_)
    else:
        limits = np.iinfo(dtype)
        keys = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return arranged(keys, order, rng)


def arranged(
    keys: np.ndarray[Any, Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Rearrange random keys within each row."""
    if order == "random" or not keys.size:
        return keys
    if order == "equal":
        return np.repeat(keys[:, :1], keys.shape[1], axis=1)
    if order == "few-unique":
        few = keys[:, : min(16, keys.shape[1])]
        return np.take_along_axis(few, rng.integers(0, few.shape[1], keys.shape), axis=1)
    if order == "zipf":
        ranks = (rng.zipf(ZIPF, keys.shape) - 1) % keys.shape[1]
        return np.take_along_axis(keys, ranks, axis=1)
    keys = np.sort(keys, axis=-1)
    if order == "reversed":
        keys = keys[:, ::-1]
    elif order == "organ-pipe":
        keys = np.concatenate([keys[:, ::2], keys[:, 1::2][:, ::-1]], axis=1)
    elif order == "nearly-sorted":
        for _ in range(max(1, keys.shape[1] // 100)):
            i, j = rng.integers(0, keys.shape[1], 2)
            keys[:, [i, j]] = keys[:, [j, i]]
    return np.ascontiguousarray(keys)


def exact(right: np.ndarray[Any, Any], given: np.ndarray[Any, Any]) -> Difference:
    """Return whether results are the same; NaN equals NaN, and -0.0 equals 0.0."""
    if given.shape != right.shape or given.dtype != right.dtype:
        return UNLIKE
    if np.array_equal(right, given, equal_nan=right.dtype.kind == "f"):
        return Difference.exact(0.0, 0.0, True)
    difference, relative = errors_of(right.astype(np.float64), given.astype(np.float64))
    return Difference.exact(float(np.max(difference)), float(np.max(relative)), False)


def c_defines(dtype: np.dtype[Any], descending: bool = False) -> dict[str, str]:
    """Return the macros of ``order.h``."""
    return {
        "KEY_T": host_c_type(dtype),
        "KEY_IS_FLOAT": str(int(dtype.kind == "f")),
        "DESCENDING": str(int(descending)),
    }
