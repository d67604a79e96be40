"""Descent to a local optimum by one parameter at a time, again and again from elsewhere."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

GAIN = 0.99
"""A step must take at most this share of the time: less is noise."""
STEPS = 3
KICKS = 3
"""A restart tries so many places, each so many random steps from the best, and one anywhere."""


def local_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Descend from the best of the starting configurations, then from elsewhere.

    The first neighbour that is faster becomes the new place, in random order of
    the neighbours; a descent ends where none is. The next one begins at the best
    of a few places, most of them not far from the best so far: good configurations
    lie together, and in a large space hardly any of those drawn at random is one.
    """
    elsewhere = points.shuffled(rng)
    starts, best = list(points.starts), None
    while True:
        tried = []
        while starts:
            tried.append((yield list(starts)))
            starts.remove(tried[-1].config)
        here = min(tried, key=lambda evaluation: evaluation.time_ms)
        moved = here.status == "correct"  # around what fails, failures abound
        while moved:
            moved = False
            near = points.neighbours(here.config)
            rng.shuffle(near)
            while near:
                there = yield list(near)
                near.remove(there.config)
                if there.time_ms < GAIN * here.time_ms:
                    here, moved = there, True
                    break
        if best is None or here.time_ms < best.time_ms:
            best = here
        anywhere = next(elsewhere, None)
        if anywhere is None:
            return  # every configuration was tried
        kicked = (_walk(points, best.config, rng) for _ in range(KICKS))
        starts = list(dict.fromkeys((anywhere, *kicked)))


def _walk(points: Points, config: Config, rng: Random) -> Config:
    """Return where a few random steps lead to."""
    for _ in range(STEPS):
        config = rng.choice(points.neighbours(config) or [config])
    return config
