"""Bayesian optimisation: a Gaussian process proposes what to measure next.

```text
 measured --fit--> mean and deviation of log time --> expected improvement --> the best first
     ^                                                                              |
     +--------------------------- evaluation of one of them ------------------------+
```

After Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1, with a Matern
kernel, a length scale for each parameter, chosen by the marginal likelihood; and Jones, Schonlau
and Welch, Efficient Global Optimization, for the expected improvement.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.strategies.features import Features
from opencl_lab.lab.tuning.strategies.gaussian import Process
from opencl_lab.lab.tuning.strategies.walks import AHEAD

Array: TypeAlias = np.ndarray[Any, Any]

NEAR_START = 4
"""Configurations nearest to the best start that are evaluated first, as starts are good."""
SPREAD = 1
"""Further configurations, far from those, before the first fit."""
REFIT_RUNS = 128
"""With n evaluations known, the model is fitted again after ``1 + n // REFIT_RUNS`` more."""
LISTED = 4000
"""Largest space in which all points are candidates; predictions for more take longer than a run."""
DRAWN = 2000
"""Random candidates in a larger space; neighbours of the best are added."""
NEAR_BEST = 3
CEILING = 1.5
"""Log times are clipped at so much above the best: how slow a slow one is tells little."""


def model(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Yield the candidates with the largest expected improvement, until none is left.

    The first are the starting configurations, those near the best of them, and a few far from all
    others.
    """
    known: dict[Config, Evaluation] = {}
    candidates = _Candidates(points, rng)
    rounds = _rounds(candidates, list(points.starts), known, rng)
    for asked, answers in rounds:
        while asked and answers:
            answer = yield list(asked)
            asked.remove(answer.config)
            known[answer.config] = answer
            answers -= 1


def _rounds(
    candidates: _Candidates, starts: list[Config], known: dict[Config, Evaluation], rng: Random
) -> Iterator[tuple[list[Config], int]]:
    """Yield candidates, the most promising first, and after how many answers to rank them again."""
    features = candidates.features
    yield starts, len(starts)
    best = min(known.values(), key=lambda item: item.time_ms).config
    left = candidates.left(known)
    order = np.argsort(_distances(features, left, [best])[:, 0], kind="stable")
    yield [left[place] for place in order[:NEAR_START]], NEAR_START
    for _ in range(SPREAD):
        left = candidates.left(known)
        some = rng.sample(left, min(len(left), AHEAD))
        if some:
            far = np.argsort(-_distances(features, some, list(known)).min(axis=1), kind="stable")
            yield [some[place] for place in far], 1
    process = Process(features.count)
    while left := candidates.left(known):
        yield _ranked(process, features, known, left), 1 + len(known) // REFIT_RUNS


class _Candidates:
    """The candidates: all points of a small space, some of a large one."""

    def __init__(self, points: Points, rng: Random):
        self._points = points
        self._whole = points.pruning.exact and points.pruning.left <= LISTED
        self._near: dict[Config, list[Config]] = {}
        self._source = points.shuffled(rng)
        self._drawn = list(islice(self._source, None if self._whole else DRAWN))
        self.features = Features([*points.starts, *self._drawn], points.traits)

    def left(self, known: dict[Config, Evaluation]) -> list[Config]:
        """Return the candidates, with evaluated ones replaced by new ones."""
        self._drawn = [config for config in self._drawn if config not in known]
        if self._whole:
            return self._drawn
        self._drawn += islice(self._source, DRAWN - len(self._drawn))
        best = sorted(known.values(), key=lambda item: item.time_ms)[:NEAR_BEST]
        for item in best:
            if item.config not in self._near:
                self._near[item.config] = self._points.neighbours(item.config)
        near = [other for item in best for other in self._near[item.config]]
        return list(dict.fromkeys(c for c in (*near, *self._drawn) if c not in known))


def _distances(features: Features, some: Sequence[Config], others: Sequence[Config]) -> Array:
    """Return the Manhattan distance of each of `some` from each of `others`."""
    apart: Array = np.abs(features.of(some)[:, None] - features.of(others)).sum(axis=2)
    return apart


def _ranked(
    process: Process, features: Features, known: dict[Config, Evaluation], left: Sequence[Config]
) -> list[Config]:
    """Return the candidates by expected improvement, the best first."""
    times = _heights(list(known.values()))
    process.fit(features.of(list(known)), times)
    mean, deviation = process.predict(features.of(left))
    order = np.argsort(-_improvement(mean, deviation, float(times.min())), kind="stable")
    return [left[place] for place in order[:AHEAD]]


def _heights(evaluations: list[Evaluation]) -> Array:
    """Return log times, clipped at `CEILING` above the best; failures are clipped, too."""
    times = np.array([item.time_ms for item in evaluations])
    with np.errstate(invalid="ignore"):
        heights = np.log(times)
    best = heights.min()
    if not math.isfinite(best):
        return np.zeros(len(times))
    cut: Array = np.minimum(heights, best + CEILING)
    return cut


def _improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the expected improvement below `best` for each mean and deviation."""
    gain = (best - mean) / deviation
    density = np.exp(-0.5 * gain**2) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + _erf(gain / math.sqrt(2)))
    expected: Array = deviation * (gain * below + density)
    return expected


def _erf(x: Array) -> Array:
    """Return the error function, off by at most 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = 0.254829592 + t * (
        -0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    )
    value: Array = np.sign(x) * (1 - t * series * np.exp(-(x**2)))
    return value
