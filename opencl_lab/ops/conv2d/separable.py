"""How a filter of rank 1 is split into two vectors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Weights: TypeAlias = np.ndarray[Any, Any]

MOST_KEPT = 1 << 16
"""Largest filter, in bytes, whose column and row are cached."""
ROUNDINGS = 8  # by which a weight may differ from the outer product of two vectors


def split(weights: Weights, dtype: np.dtype[Any]) -> tuple[Weights, Weights] | None:
    """Return a column and a row whose outer product is `weights`, or None if there are none.

    Each weight is compared by itself, so that small ones are not lost beside large ones, and sums
    with the column and the row keep the error bound of sums with the weights. Differences of a few
    roundings in `dtype`, the type of the sums and of the weights, are allowed; subnormal numbers
    have fewer digits to round to.

    The row is that of the largest weight; the column is the column of that weight divided by it.
    So sums along the rows are those of a row of the filter, and overflow no sooner. If the weight
    is above 1, about its square root moves from the row to the column, so that both stay in range.
    """
    whole = np.ascontiguousarray(weights.astype(dtype, copy=False), np.float64)
    split = _kept_split if whole.nbytes <= MOST_KEPT else _split
    return split(whole.tobytes(), whole.shape, dtype)


def _split(
    data: bytes, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Weights, Weights] | None:
    weights = np.frombuffer(data).reshape(shape)
    sizes = np.abs(weights)
    if not sizes.size or not np.isfinite(sizes).all():
        return None
    at_row, at_column = divmod(int(sizes.argmax()), shape[1])
    largest = weights[at_row, at_column]
    power = max(0, np.frexp(largest)[1] // 2)
    with np.errstate(all="ignore"):
        column = np.ldexp(weights[:, at_column] / (largest or 1.0), power).astype(dtype)
        row = np.ldexp(weights[at_row], -power).astype(dtype)
        rest = np.abs(weights - np.outer(column.astype(np.float64), row.astype(np.float64)))
    limits = np.finfo(dtype)
    eps = float(limits.eps)
    rounding = eps * np.maximum(sizes, float(limits.tiny))
    if not (rest <= ROUNDINGS * rounding).all():
        return None
    for line in (column, row):
        line.flags.writeable = False
    return column, row


_kept_split = lru_cache(maxsize=64)(_split)
