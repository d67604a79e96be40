"""The expected result of a convolution by NumPy's FFT, for filters whose sums take long.

Image and filter are divided into blocks, and each pair of blocks is a product of transforms
(partitioned overlap-save). In float64 the error of a product is at most a multiple of the
product of both norms (N. Higham, "Accuracy and Stability of Numerical Algorithms", theorem
24.2). Where that is not small against the error bound of a kernel, which differs from value to
value, the sum is formed directly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.plan import ceil_divide
from opencl_lab.lab.ops.conv2d import expected
from opencl_lab.lab.ops.conv2d.expected import coordinates, rounded, window_of
from opencl_lab.ops.conv2d.problem import Conv2dProblem

Array = np.ndarray[Any, Any]

MANY_PRODUCTS = 1 << 30
"""Number of products from which on sums take more than a second or two."""
MANY_TAPS = 1024
EDGE = 1024
"""Largest number of weights of a block along an axis; a transform is twice as long."""
MANY_SUMS = 64
"""At most one of so many sums may be formed directly."""
CERTAIN = 8.0
"""The error must be smaller than the bound of a kernel by this factor."""
UNIT = float(np.finfo(np.float64).eps) / 2


def pays(problem: Conv2dProblem) -> bool:
    """Return whether transforms are faster."""
    taps = problem.filter_height * problem.filter_width
    return taps >= MANY_TAPS and problem.products > MANY_PRODUCTS


def correlate(problem: Conv2dProblem, images: Array, weights: Array) -> Array | None:
    """Return the result of a problem; None if transforms are not accurate enough.

    These are problems with values that are not finite, with integers that float64 cannot
    represent, or with so different magnitudes that many sums would have to be formed directly.
    """
    cval = problem.extension[1]
    wide = weights.astype(np.float64)
    if problem.flip:
        wide = wide[::-1, ::-1]
    if not (np.isfinite(images).all() and np.isfinite(wide).all() and math.isfinite(cval)):
        return None
    result = np.empty(problem.result_shape, problem.dtype)
    with np.errstate(all="ignore"):
        for image, target in zip(images, result, strict=True):
            for channel in range(problem.channels):
                plane = image[..., channel].astype(np.float64)
                sums = _Plane(problem, plane, wide, cval).certain()
                if sums is None:
                    return None
                target[..., channel] = rounded(problem, sums)
    return result


def correlate_soon(problem: Conv2dProblem, images: Array, weights: Array) -> Array:
    """Return the result of a problem, by transforms if they are faster and accurate enough."""
    found = correlate(problem, images, weights) if pays(problem) else None
    return expected.correlate(problem, images, weights) if found is None else found


class _Plane:
    """One channel of one image with the filter."""

    def __init__(self, problem: Conv2dProblem, image: Array, weights: Array, cval: float):
        self.problem, self.image, self.weights, self.cval = problem, image, weights, cval
        self.rows, self.columns = coordinates(problem)

    def certain(self) -> Array | None:
        """Return the sums, accurate enough to check a kernel; None if that takes long."""
        problem = self.problem
        sums, error = self.transformed()
        if problem.sum_type.kind == "i":
            return np.rint(sums).astype(np.int64) if error.max(initial=0) < 0.25 else None
        growth = self.weights.size * float(np.finfo(problem.sum_type).eps) / 2
        slack = 1.0 if problem.dtype.kind in "iu" else 0.0  # rounded integers may differ by 1
        doubtful = ~(CERTAIN * error <= growth * np.abs(sums) + slack)
        if doubtful.any():
            sizes, their_error = self._of(np.abs).transformed()
            doubtful &= ~(CERTAIN * error <= growth * (sizes - their_error) + slack)
        if doubtful.any():
            counts, their_error = self._of(lambda x: np.not_equal(x, 0.0)).transformed()
            nothing = counts + their_error < 0.5
            sums[nothing] = 0
            doubtful &= ~nothing
        count = np.count_nonzero(doubtful)
        if count * MANY_SUMS > sums.size or count * self.weights.size > MANY_PRODUCTS:
            return None
        for y, x in np.argwhere(doubtful):
            sums[y, x] = (self._window(y, x, self.weights.shape) * self.weights).sum()
        return sums

    def _of(self, function: Any) -> _Plane:
        values = (function(x) for x in (self.image, self.weights, np.float64(self.cval)))
        image, weights, cval = (np.asarray(value, np.float64) for value in values)
        return _Plane(self.problem, image, weights, float(cval))

    def _window(self, y: int, x: int, shape: tuple[int, ...]) -> Array:
        """Return a window of the image, extended beyond its edges."""
        rows, columns = self.rows[y : y + shape[0]], self.columns[x : x + shape[1]]
        return window_of(self.image[..., None], rows, columns, np.dtype(np.float64), self.cval)[
            ..., 0
        ]

    def transformed(self) -> tuple[Array, Array]:
        """Return the sums by transforms, and the error bound of each."""
        taps, out = self.weights.shape, self.problem.result_shape[1:3]
        edges = [1 << min(max(n - 1, 63).bit_length(), EDGE.bit_length() - 1) for n in taps]
        size = tuple(2 * edge for edge in edges)
        block = [min(n, edge) for n, edge in zip(taps, edges, strict=True)]
        tile = [n - b + 1 for n, b in zip(size, block, strict=True)]
        pairs = math.prod(ceil_divide(n, b) for n, b in zip(taps, block, strict=True))
        each = (21 * math.log2(math.prod(size)) + 10 + pairs) * UNIT
        sums, error = np.zeros(out), np.zeros(out)
        for j in range(0, taps[0], block[0]):
            for i in range(0, taps[1], block[1]):
                part = self.weights[j : j + block[0], i : i + block[1]]
                norm = float(np.linalg.norm(part))
                filtering = np.fft.rfft2(part, size).conj()
                for y in range(0, out[0], tile[0]):
                    for x in range(0, out[1], tile[1]):
                        window = self._window(y + j, x + i, size)
                        if not (norm and window.any()):
                            continue
                        here = slice(y, y + tile[0]), slice(x, x + tile[1])
                        rows, columns = sums[here].shape
                        product = np.fft.rfft2(window, size) * filtering
                        sums[here] += np.fft.irfft2(product, size)[:rows, :columns]
                        error[here] += each * norm * float(np.linalg.norm(window))
        return sums, error
