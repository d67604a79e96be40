"""Tables of roots of unity for kernels, computed in float64 and rounded once.

The twiddle factors of an FFT are powers of w_n = exp(-2 pi i / n): between the passes of a
transform (`schedule`) and between its steps (`steps`). A chirp has powers of w_2n that grow with
the square of the position (`bluestein`).

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
from opencl_lab.ops.fft.passes.vector_step import Vectors


def roots_of_unity(powers: Any, n: int) -> np.ndarray[Any, Any]:
    """Return ``exp(-2 pi i power / n)`` of integer powers, in complex128.

    Powers are reduced exactly, as integers, to an eighth of the circle, so that the error is that
    of the sine of a small angle: about half a unit in the last place.
    """
    quarter, rest = np.divmod(4 * (np.asarray(powers, dtype=np.int64) % n), n)
    mirrored = 2 * rest > n
    angle = (np.pi / 2) * (np.where(mirrored, n - rest, rest) / n)
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = np.where(mirrored, sine, cosine), np.where(mirrored, cosine, sine)
    result = np.empty(x.shape, np.complex128)
    result.real = np.choose(quarter, (x, -y, -x, y))
    result.imag = -np.choose(quarter, (y, x, -y, -x))
    return result


def rounded(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return complex numbers rounded to `dtype`."""
    return np.ascontiguousarray(values.astype(dtype))


def root_table(n: int, inverse: bool, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the n roots of unity in the order of their powers."""
    roots = roots_of_unity(np.arange(n), n)
    return rounded(roots.conj() if inverse else roots, dtype)


def local_twiddles(radices: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the twiddle factors of Stockham passes for the local-memory form.

    These are w_(S R)^(i k), for each pass but the first, each i from 1 to R - 1, and each k below
    S, the product of the radices before. They begin at the `twiddle_offset` of the pass.
    """
    tables = [np.empty(0, np.complex128)]
    for each in Schedule.of(radices).passes[1:]:
        powers = np.outer(np.arange(1, each.radix), np.arange(each.stride))
        tables.append(roots_of_unity(powers, each.stride * each.radix).reshape(-1))
    return rounded(np.concatenate(tables), dtype)


def strided_twiddles(
    count: int, distance: int, n: int, dtype: np.dtype[Any], first: int = 0
) -> np.ndarray[Any, Any]:
    """Return w_n^(first + distance e) for e < count."""
    return rounded(roots_of_unity(first + distance * np.arange(count), n), dtype)


def chirp(n: int, inverse: bool, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return exp(-+ pi i j^2 / n) for j < n."""
    wave = _chirp(n)
    return rounded(wave.conj() if inverse else wave, dtype)


def chirp_spectrum(n: int, m: int, inverse: bool, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the transform of length m, divided by m, of the conjugate chirp around 0."""
    wave = _chirp(n) if inverse else _chirp(n).conj()
    around = np.zeros(m, np.complex128)
    around[:n] = wave
    around[m - n + 1 :] = wave[:0:-1]
    return rounded(np.fft.fft(around) / m, dtype)


def _chirp(n: int) -> np.ndarray[Any, Any]:
    j = np.arange(n, dtype=np.int64)
    return roots_of_unity(j * j, 2 * n)


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
