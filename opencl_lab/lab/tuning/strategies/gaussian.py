"""Gaussian process regression: predictions with standard deviations."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.plan import ceil_divide

Array: TypeAlias = np.ndarray[Any, Any]

LENGTHS = (0.1, 10.0)
"""Bounds of the length scales, relative to the sides of the cube."""
NOISES = (1e-4, 1e-1)
"""Bounds of the noise variance, relative to the variance of the function."""
STEP = 2.0
GROW = 1.1
ALONE = 0.5
"""Share of the variance that comes from single coordinates."""
MOST = 160
"""Largest number of points to fit: half of them the lowest, half spread over the others."""
LEARNED = 96
"""Largest number of points to choose length scales and noise by."""


class Process:
    """A Gaussian process on the unit cube of `dimensions` dimensions."""

    def __init__(self, dimensions: int):
        self._lengths = np.ones(dimensions)
        self._noise = 1e-2
        self._fitted = 0
        self._points = np.empty((0, dimensions))

    def fit(self, points: Array, heights: Array) -> None:
        """Fit the function values `heights` at `points`, which are rows."""
        known = len(points)
        points, heights = _some(points, heights, MOST)
        self._mean = float(heights.mean())
        self._scale = float(heights.std()) or 1.0
        heights = (heights - self._mean) / self._scale
        if known >= GROW * self._fitted:
            self._learn(*_some(points, heights, LEARNED))
            self._fitted = known
        self._points = points
        covariance = _covariance(points, points, self._lengths)
        covariance[np.diag_indices_from(covariance)] += self._noise
        self._inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        self._weights = self._inverse.T @ (self._inverse @ heights)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return the expected values at points, and their standard deviations."""
        between = _covariance(points, self._points, self._lengths)
        spread = between @ self._inverse.T
        variance = np.maximum(1 - (spread**2).sum(axis=1), 1e-9)
        mean = between @ self._weights
        return mean * self._scale + self._mean, np.sqrt(variance) * self._scale

    def _learn(self, points: Array, heights: Array) -> None:
        """Choose length scales and noise by the marginal likelihood, one coordinate at a time."""

        def likelihood(lengths: Array, noise: float) -> float:
            return _likelihood(points, heights, lengths, noise)

        best = likelihood(self._lengths, self._noise)
        for _ in range(2):
            before = best
            for place in range(len(self._lengths)):
                for factor in (STEP, 1 / STEP):
                    lengths = self._lengths.copy()
                    lengths[place] = np.clip(lengths[place] * factor, *LENGTHS)
                    value = likelihood(lengths, self._noise)
                    if value > best:
                        best, self._lengths = value, lengths
            for factor in (STEP, 1 / STEP):
                noise = float(np.clip(self._noise * factor, *NOISES))
                value = likelihood(self._lengths, noise)
                if value > best:
                    best, self._noise = value, noise
            if best == before:
                return


def _some(points: Array, heights: Array, most: int) -> tuple[Array, Array]:
    """Return at most `most` points: half of them the lowest, half spread over the others."""
    if len(points) <= most:
        return points, heights
    order = np.argsort(heights, kind="stable")
    others = order[most // 2 :]
    kept = np.concatenate([order[: most // 2], others[:: ceil_divide(len(others), most // 2)]])
    return points[kept], heights[kept]


def _likelihood(points: Array, heights: Array, lengths: Array, noise: float) -> float:
    """Return the log marginal likelihood of heights, with a prior for length scales."""
    count = len(points)
    # With the heights as the last row of the matrix, the last row of its Cholesky factor solves
    # the triangular system for them; the corner is large enough for any heights.
    bordered = np.empty((count + 1, count + 1))
    bordered[:count, :count] = _covariance(points, points, lengths)
    bordered[np.diag_indices(count)] += noise
    bordered[count, :count] = bordered[:count, count] = heights
    bordered[count, count] = 1 + float(heights @ heights) / noise
    lower = np.linalg.cholesky(bordered)
    fit = -0.5 * float((lower[count, :count] ** 2).sum())
    fit -= float(np.log(np.diag(lower)[:count]).sum())
    # The prior prefers length scales near the middle.
    return fit - 0.5 * float((np.log(lengths) ** 2).sum()) / math.log(4) ** 2


def _covariance(one: Array, other: Array, lengths: Array) -> Array:
    """Return the covariances between all pairs of points, and the mean ones of single coordinates.

    The function is modelled as the sum of a function of all coordinates and of functions of single
    coordinates, which can be learned from few points (Duvenaud, Nickisch and Rasmussen, Additive
    Gaussian Processes).
    """
    if not one.shape[1]:
        return np.ones((len(one), len(other)))
    together: Array = _matern(_distances(one / lengths, other / lengths))
    return ALONE * _each(one, other, lengths) + (1 - ALONE) * together


def _each(one: Array, other: Array, lengths: Array) -> Array:
    """Return the mean of the covariances of single coordinates, which have few values each."""
    found, places = [], []
    for mine, theirs, length in zip(one.T, other.T, lengths, strict=True):
        values, place = np.unique(theirs, return_inverse=True)
        found.append(_matern(np.abs(mine[:, None] - values) / length))
        places.append(np.eye(len(values))[:, place])
    mean: Array = np.hstack(found) @ np.vstack(places) / len(lengths)
    return mean


def _distances(a: Array, b: Array) -> Array:
    """Return the distances of all pairs."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    apart: Array = np.sqrt(np.maximum(squares, 0.0))
    return apart


def _matern(distance: Array) -> Array:
    """Return the Matern covariance of order 5/2 at a distance."""
    scaled = math.sqrt(5) * distance
    matern: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return matern
