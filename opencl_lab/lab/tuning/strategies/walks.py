"""Exhaustive and random search."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice
from random import Random

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

AHEAD = 64
"""Number of configurations that are yielded together, so that they can be built ahead."""


def exhaustive(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Yield all configurations in order."""
    yield from in_order(points)


def random_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Yield configurations in random order."""
    yield from in_order(points.shuffled(rng))


def in_order(configs: Iterable[Config]) -> Generator[list[Config], Evaluation, None]:
    """Yield each of these until it was evaluated."""
    source = iter(configs)
    named = list(islice(source, AHEAD))
    while named:
        answer = yield list(named)
        named.remove(answer.config)
        named += islice(source, 1)
