"""The twiddle factors of the vector form, in the order in which its passes read them.

Of a pass with stride S and radix R, and of each of its inputs i from 1 to R - 1, a butterfly at
place k of its run needs w_(S R)^(i k), with w_m = exp(-2 pi sqrt(-1) / m). Real and imaginary
components lie apart, as those of the points do::

    over the batch    k = 0: re im (i = 1), re im (i = 2), ..  k = 1: ..        numbers
    over the points   k = 0 .. V-1: re im (i = 1), ..          k = V .. 2V-1    vectors of V lanes

The second step of a four-step transform evaluates its transform p, out of `lanes` side by side (not
the lanes of a vector), at frequencies k + p / lanes. The factor w_(S R)^(i (k + p / lanes)) of
input i is a product: w_(S R)^(i k) by position times w_(S R lanes)^(i p) by transform. The latter
are the *step twiddles*::

    vector of p = 0 .. V-1      pass 0: re im (i = 1), re im (i = 2), ..  pass 1: ..
    vector of p = V .. 2V-1     pass 0: ..

All are computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.twiddles import roots_of_unity
from opencl_lab.ops.fft.passes.vector_step import Vectors


def vector_twiddles(
    schedule: Schedule, positions: int, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return the twiddle factors of all passes but the first, as real numbers of `dtype`.

    There are two real numbers for each of the schedule's `twiddle_count` factors. A vector has
    `positions` neighbouring positions of a transform: 1 over the batch.
    """
    tables = [np.empty(0)]
    for each in schedule.passes[1:]:
        k = np.arange(each.stride).reshape(-1, 1, positions)
        i = np.arange(1, each.radix).reshape(1, -1, 1)
        tables.append(_apart(roots_of_unity(i * k, each.stride * each.radix)).reshape(-1))
    return np.concatenate(tables).astype(dtype)


def vector_step_twiddles(
    schedule: Schedule, vectors: Vectors, lanes: int, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return the step twiddles of all passes of a second step, for each vector of each block.

    `lanes` is the number of transforms side by side: the points of the first step.
    """
    first = np.array(vectors.first_lanes(lanes))
    p = np.add.outer(first, np.arange(vectors.transforms)).reshape(-1, 1, vectors.width)
    tables = []
    for each in schedule.passes:
        i = np.arange(1, each.radix).reshape(1, -1, 1)
        tables.append(_apart(roots_of_unity(i * p, each.stride * each.radix * lanes)))
    return np.concatenate(tables, axis=1).reshape(-1).astype(dtype)


def in_vectors(
    width: int, function: Callable[..., np.ndarray[Any, Any]], *arguments: Hashable
) -> np.ndarray[Any, Any]:
    """Return the complex table ``function(*arguments)`` as vectors, the last one filled up by 0."""
    table = function(*arguments)
    filled = np.pad(table, (0, -len(table) % width)).reshape(-1, 1, width)
    return _apart(filled).reshape(-1)


def _apart(factors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the real and imaginary components of vectors, one after the other."""
    return np.stack([factors.real, factors.imag], axis=2)
