"""Configurations drawn at random, none of them twice."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from opencl_lab.space import Config
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.prune import Points

__all__ = ["random_search"]


def random_search(points: Points, rng: Random) -> Generator[Config, Evaluation, None]:
    """Ask in random order."""
    for config in points.shuffled(rng):  # noqa: UP028  (answers cannot be sent through to it)
        yield config
