"""Configurations drawn at random, none of them twice."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.strategies.exhaustive import in_order


def random_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Ask in random order."""
    yield from in_order(points.shuffled(rng))
