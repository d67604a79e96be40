"""Search strategies: each is a function that returns a point generator.

The generator yields candidates for the next evaluation, the most promising first, and is sent the
`Evaluation` of one of them: the first that is built, while the others are built ahead. Results are
cached, so a configuration can be yielded again at no cost. Strategies know neither budgets nor
devices, and end when they have no more candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.explore import PointGenerator
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.strategies.local_search import local_search
from opencl_lab.lab.tuning.strategies.walks import exhaustive, in_order, random_search

__all__ = ["DEFAULT_STRATEGY", "STRATEGIES", "Strategy", "get_strategy", "in_order"]

Strategy: TypeAlias = Callable[[Points, Random], PointGenerator[Config, Evaluation]]

STRATEGIES: dict[str, Strategy] = {
    "exhaustive": exhaustive,
    "random": random_search,
    "local-search": local_search,
}

DEFAULT_STRATEGY = "local-search"


def get_strategy(name: str) -> Strategy:
    """Return a strategy by name."""
    if name not in STRATEGIES:
        raise InvalidConfig(f"there is no strategy {name!r}; there are: {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
