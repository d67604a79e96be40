"""Every configuration, in the order of the space."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from opencl_lab.space import Config
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.prune import Points

__all__ = ["exhaustive"]


def exhaustive(points: Points, rng: Random) -> Generator[Config, Evaluation, None]:
    """Ask for all there is."""
    for config in points:  # noqa: UP028  (answers cannot be sent through to an iterator)
        yield config
