"""Regression by a Gaussian process: predictions that say how unsure they are."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.plan import ceil_divide

Array: TypeAlias = np.ndarray[Any, Any]

LENGTHS = (0.1, 10.0)
"""Of the cube's sides: the shortest and the longest over which a function may change."""
NOISES = (1e-4, 1e-1)
"""Least and largest variance of a measurement, of all that the function varies."""
STEP = 2.0
GROW = 1.1
ALONE = 0.5
"""Of the variance: what comes from each coordinate alone."""
MOST = 160
"""Points that are fitted: the lowest half, and of the others as many, evenly."""
LEARNED = 96
"""Points that lengths and noise are chosen by."""


class Process:
    """A function of points in a cube of so many dimensions, known at some of them."""

    def __init__(self, dimensions: int):
        self._lengths = np.ones(dimensions)
        self._noise = 1e-2
        self._fitted = 0
        self._points = np.empty((0, dimensions))

    def fit(self, points: Array, heights: Array) -> None:
        """Take in what is known: points in rows, and the function's heights there."""
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
        """Return the heights to expect, and their standard deviations."""
        between = _covariance(points, self._points, self._lengths)
        spread = between @ self._inverse.T
        variance = np.maximum(1 - (spread**2).sum(axis=1), 1e-9)
        mean = between @ self._weights
        return mean * self._scale + self._mean, np.sqrt(variance) * self._scale

    def _learn(self, points: Array, heights: Array) -> None:
        """Choose lengths and noise by the marginal likelihood, one at a time from the last."""

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
    """Return so many points at most: the lowest half, and of the others as many, evenly."""
    if len(points) <= most:
        return points, heights
    order = np.argsort(heights, kind="stable")
    others = order[most // 2 :]
    kept = np.concatenate([order[: most // 2], others[:: ceil_divide(len(others), most // 2)]])
    return points[kept], heights[kept]


def _likelihood(points: Array, heights: Array, lengths: Array, noise: float) -> float:
    """Return the log likelihood of heights, with a prior for lengths."""
    count = len(points)
    # The factor of the covariance with the heights as its last row has the factor's inverse times
    # the heights there; the corner is large enough for any heights.
    bordered = np.empty((count + 1, count + 1))
    bordered[:count, :count] = _covariance(points, points, lengths)
    bordered[np.diag_indices(count)] += noise
    bordered[count, :count] = bordered[:count, count] = heights
    bordered[count, count] = 1 + float(heights @ heights) / noise
    lower = np.linalg.cholesky(bordered)
    fit = -0.5 * float((lower[count, :count] ** 2).sum())
    fit -= float(np.log(np.diag(lower)[:count]).sum())
    # Lengths near the middle unless the data say otherwise.
    return fit - 0.5 * float((np.log(lengths) ** 2).sum()) / math.log(4) ** 2


def _covariance(one: Array, other: Array, lengths: Array) -> Array:
    """Return the covariance between all pairs of points: of the whole, and of each coordinate.

    A function is taken for a sum: of one that all coordinates together make, and of one for each
    coordinate alone, which few points are enough to learn (Duvenaud, Nickisch and Rasmussen,
    Additive Gaussian Processes).
    """
    if not one.shape[1]:
        return np.ones((len(one), len(other)))
    together: Array = _matern(_distances(one / lengths, other / lengths))
    return ALONE * _each(one, other, lengths) + (1 - ALONE) * together


def _each(one: Array, other: Array, lengths: Array) -> Array:
    """Return the mean of the covariances of the coordinates, which have few values each."""
    found, places = [], []
    for mine, theirs, length in zip(one.T, other.T, lengths, strict=True):
        values, place = np.unique(theirs, return_inverse=True)
        found.append(_matern(np.abs(mine[:, None] - values) / length))
        places.append(np.eye(len(values))[:, place])
    mean: Array = np.hstack(found) @ np.vstack(places) / len(lengths)
    return mean


def _distances(a: Array, b: Array) -> Array:
    """Return how far all pairs are apart."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    apart: Array = np.sqrt(np.maximum(squares, 0.0))
    return apart


def _matern(distance: Array) -> Array:
    """Return the Matern covariance of order 5/2 by distance."""
    scaled = math.sqrt(5) * distance
    matern: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return matern
