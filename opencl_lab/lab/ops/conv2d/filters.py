"""Filters by name."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem

Weights: TypeAlias = np.ndarray[Any, Any]

FILTERS = ("box", "gaussian", "sharpen", "emboss", "sobel", "sobel-y", "laplacian", "unsharp")
SIGNED = ("sobel", "sobel-y", "laplacian")
"""Filters whose results have either sign."""
RADIUS = 3.0  # default radius of a Gaussian in standard deviations


def _delta(size: int) -> Weights:
    weights = np.zeros((size, size))
    weights[size // 2, size // 2] = 1
    return weights


def _distances(size: int) -> Weights:
    return np.asarray(np.arange(size) - (size - 1) / 2)


def _gaussian(size: int, sigma: float) -> Weights:
    line = np.exp(-((_distances(size) / sigma) ** 2) / 2)
    return np.outer(line, line) / float(line.sum()) ** 2


def _binomial(size: int) -> Weights:
    return np.array([math.comb(size - 1, k) for k in range(size)], np.float64)


def _sobel(size: int) -> Weights:
    """Return the smoothed derivative along x, positive where it gets brighter to the right."""
    return np.outer(_binomial(size), np.convolve(_binomial(size - 2), [-1.0, 0.0, 1.0]))


def _laplacian(size: int, sigma: float | None) -> Weights:
    """Return the five-point stencil, or the Laplacian of a Gaussian with a sum of zero."""
    if size == 3 and sigma is None:
        return np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])
    spread = _default_sigma(size) if sigma is None else sigma
    squares = _distances(size)[:, None] ** 2 + _distances(size) ** 2
    weights = (squares / spread**2 - 2) * _gaussian(size, spread) / spread**2
    result: Weights = weights - weights.mean()
    return result


def _emboss(size: int) -> Weights:
    """Return light from the upper left: [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]."""
    slope = _distances(size)[:, None] + _distances(size)
    slope *= 4 / slope[slope > 0].sum()
    return slope + _delta(size)


def _default_sigma(size: int) -> float:
    return 0.3 * ((size - 1) / 2 - 1) + 0.8


def named_filter(name: str, size: int | None = None, sigma: float | None = None) -> Weights:
    """Return the weights of one of `FILTERS` for correlation, in float64, shape (size, size).

    By default `size` is 3, or depends on `sigma`, the standard deviation of the Gaussian in
    ``gaussian``, ``unsharp``, ``laplacian`` and ``sharpen``, whose default depends on the size as
    in OpenCV. ``sobel`` differentiates along x, ``sobel-y`` along y.
    """
    if name not in FILTERS:
        raise InvalidProblem(f"there is no filter {name!r}; there are: {', '.join(FILTERS)}")
    if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
        raise InvalidProblem(f"sigma must be positive, not {sigma}")
    smooth = name in ("gaussian", "unsharp", "laplacian", "sharpen")
    if sigma is not None and not smooth:
        raise InvalidProblem(f"the filter {name} has no sigma; leave it out")
    if size is None:
        size = 3 if sigma is None else 2 * math.ceil(RADIUS * sigma) + 1
    if size < 1:
        raise InvalidProblem(f"a filter has at least one weight, ksize is {size}")
    if name not in ("box", "gaussian") and (size < 3 or size % 2 == 0):
        raise InvalidProblem(f"the filter {name} needs an odd ksize of at least 3, not {size}")
    if name == "box":
        return np.full((size, size), 1 / size**2)
    if name == "gaussian":
        return _gaussian(size, sigma or _default_sigma(max(size, 3)))
    if name == "unsharp":
        return 2 * _delta(size) - _gaussian(size, sigma or _default_sigma(size))
    if name == "sharpen":
        return _delta(size) - _laplacian(size, sigma)
    if name == "laplacian":
        return _laplacian(size, sigma)
    if name == "emboss":
        return _emboss(size)
    return np.ascontiguousarray(_sobel(size).T) if name == "sobel-y" else _sobel(size)
