"""Search strategies: functions that return point generators.

The generator yields candidates for the next evaluation, the most promising first, and is sent the
`Evaluation` of one of them: the first that is built, while the others are built ahead. Results are
cached, so a configuration can be yielded again at no cost. Strategies know neither budgets nor
devices, and end when they have no more candidates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import islice
from random import Random
from statistics import fmean
from typing import TypeAlias

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.space import Config, Value
from opencl_lab.lab.engine.explore import PointGenerator
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

AHEAD = 64
"""Number of configurations that are yielded together, so that they can be built ahead."""
GAIN = 0.99
"""A move is accepted if the ratio of the new time to the old one is below this; less is noise."""
DRAWN = 2000
"""Number of random points from which a restart chooses."""
PICKS = 3
"""Number of promising points that a restart tries, besides a random one."""
CEILING = 1.5
"""Log times are clipped at so much above the best: how slow a slow one is tells little."""


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


def local_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Descend from the best starting configuration, then restart.

    The first faster neighbour becomes the new point; a descent ends where none is faster.
    Neighbours are tried in the order of the mean log times that their values had so far, and
    descents start again from points that are promising in the same sense. These are also yielded
    after the neighbours, so that builders have enough to do.
    """
    known: dict[Config, Evaluation] = {}
    source, drawn = points.shuffled(rng), list[Config]()

    def ask(first: list[Config]) -> Generator[list[Config], Evaluation, Evaluation]:
        more = (config for config in drawn if config not in known and config not in first)
        answer = yield [*first, *islice(more, max(0, AHEAD - len(first)))]
        known[answer.config] = answer
        if answer.config in first:
            first.remove(answer.config)
        return answer

    starts = list(points.starts)
    while starts:
        tried = []
        while starts:
            tried.append((yield from ask(starts)))
        here = min(tried, key=lambda evaluation: evaluation.time_ms)
        moved = here.status == "correct"  # neighbours of failing configurations often fail
        while moved:
            moved = False
            near = [config for config in points.neighbours(here.config) if config not in known]
            rng.shuffle(near)
            near = _ranked(near, known)
            while near and not moved:
                there = yield from ask(near)
                moved = there.time_ms < GAIN * here.time_ms
            here = there if moved else here
        drawn = [config for config in drawn if config not in known]
        drawn += [c for c in islice(source, DRAWN - len(drawn)) if c not in known]
        anywhere = rng.sample(drawn, min(1, len(drawn)))
        drawn = _ranked(drawn, known)
        starts = list(dict.fromkeys([*drawn[:PICKS], *anywhere]))


def _ranked(configs: Iterable[Config], known: Mapping[Config, Evaluation]) -> list[Config]:
    """Return configurations by the sum of the mean log times of their values, the least first."""
    best = min(item.time_ms for item in known.values())
    if not math.isfinite(best):
        return list(configs)
    most = math.exp(CEILING) * best
    heights = {config: math.log(min(item.time_ms, most)) for config, item in known.items()}
    usual = fmean(heights.values())
    # With the mean as one of them, so that a value seen once is not taken for certain.
    found: defaultdict[tuple[str, Value], list[float]] = defaultdict(lambda: [usual])
    for config, height in heights.items():
        for pair in config.items():
            found[pair].append(height)
    means = {pair: fmean(values) for pair, values in found.items()}
    return sorted(configs, key=lambda config: sum(means.get(p, usual) for p in config.items()))


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
