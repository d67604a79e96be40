"""Every configuration, in the order of the space or at random."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice
from random import Random

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

AHEAD = 64
"""Configurations that are named ahead, so that they can be built meanwhile."""


def exhaustive(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Ask for all there is."""
    yield from in_order(points)


def random_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Ask in random order."""
    yield from in_order(points.shuffled(rng))


def in_order(configs: Iterable[Config]) -> Generator[list[Config], Evaluation, None]:
    """Ask for each of these once."""
    source = iter(configs)
    named = list(islice(source, AHEAD))
    while named:
        answer = yield list(named)
        named.remove(answer.config)
        named += islice(source, 1)
