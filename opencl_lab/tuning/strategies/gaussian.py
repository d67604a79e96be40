"""Regression by a Gaussian process: predictions that say how unsure they are."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Process"]

Array: TypeAlias = np.ndarray[Any, Any]

LENGTHS = (0.1, 10.0)
"""Of the cube's sides: the shortest and the longest over which a function may change."""
NOISES = (1e-4, 1e-1)
"""Least and largest variance of a measurement, of all that the function varies."""
STEP = 2.0
GROW = 1.1
MOST = 256
"""Points that are fitted: the lowest half, and of the others as many, evenly."""


class Process:
    """A function of points in a cube, known at some of them.

    Parameters
    ----------
    dimensions : int
        Coordinates of a point.
    """

    def __init__(self, dimensions: int):
        self._lengths = np.ones(dimensions)
        self._noise = 1e-2
        self._fitted = 0
        self._points = np.empty((0, dimensions))

    def fit(self, points: Array, heights: Array) -> None:
        """Take in what is known: points in rows, and the function's heights there."""
        if len(points) > MOST:
            order = np.argsort(heights, kind="stable")
            others = order[MOST // 2 :]
            kept = [order[: MOST // 2], others[:: -(-len(others) // (MOST // 2))]]
            points, heights = points[np.concatenate(kept)], heights[np.concatenate(kept)]
        self._points = points
        self._mean = float(heights.mean())
        self._scale = float(heights.std()) or 1.0
        self._heights = (heights - self._mean) / self._scale
        if len(points) >= GROW * self._fitted:
            self._learn()
            self._fitted = len(points)
        lower, self._weights, _ = self._solve(self._lengths, self._noise)
        self._inverse = np.linalg.inv(lower)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return the heights to expect, and their standard deviations."""
        between = _matern(points, self._points, self._lengths)
        spread = between @ self._inverse.T
        variance = np.maximum(1 - (spread**2).sum(axis=1), 1e-9)
        mean = between @ self._weights
        return mean * self._scale + self._mean, np.sqrt(variance) * self._scale

    def _learn(self) -> None:
        """Choose lengths and noise by the marginal likelihood, one at a time from the last."""
        best = self._solve(self._lengths, self._noise)[2]
        for _ in range(2):
            before = best
            for place in range(len(self._lengths)):
                for factor in (STEP, 1 / STEP):
                    lengths = self._lengths.copy()
                    lengths[place] = np.clip(lengths[place] * factor, *LENGTHS)
                    value = self._solve(lengths, self._noise)[2]
                    if value > best:
                        best, self._lengths = value, lengths
            for factor in (STEP, 1 / STEP):
                noise = float(np.clip(self._noise * factor, *NOISES))
                value = self._solve(self._lengths, noise)[2]
                if value > best:
                    best, self._noise = value, noise
            if best == before:
                return

    def _solve(self, lengths: Array, noise: float) -> tuple[Array, Array, float]:
        """Return the covariance's Cholesky factor, the weights, and the log likelihood."""
        covariance = _matern(self._points, self._points, lengths)
        covariance[np.diag_indices_from(covariance)] += noise
        lower = np.linalg.cholesky(covariance)
        weights = np.linalg.solve(covariance, self._heights)
        fit = -0.5 * float(self._heights @ weights) - float(np.log(np.diag(lower)).sum())
        # Lengths near the middle unless the data say otherwise.
        prior = -0.5 * float((np.log(lengths) ** 2).sum()) / math.log(4) ** 2
        return lower, weights, fit + prior


def _matern(one: Array, other: Array, lengths: Array) -> Array:
    """Return the Matern covariance of order 5/2 between all pairs of points."""
    a, b = one / lengths, other / lengths
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    distance = np.sqrt(5 * np.maximum(squares, 0.0))
    matern: Array = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return matern
