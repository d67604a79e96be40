"""Descent to a local optimum, one parameter at a time, with restarts."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

GAIN = 0.99
"""A move is accepted if the ratio of the new time to the old one is below this; less is noise."""
STEPS = 3
KICKS = 3
"""A restart tries `KICKS` points, each `STEPS` random moves from the best, and one random point."""


def local_search(points: Points, rng: Random) -> Generator[list[Config], Evaluation, None]:
    """Descend from the best starting configuration, then restart.

    Neighbours are tried in random order, and the first faster one becomes the new point; a descent
    ends where none is faster. The next descent starts at the best of a few points, most of them
    near the best so far: good configurations lie close together, and in a large space random
    points are hardly ever good.
    """
    elsewhere = points.shuffled(rng)
    starts, best = list(points.starts), None
    while True:
        tried = []
        while starts:
            tried.append((yield list(starts)))
            starts.remove(tried[-1].config)
        here = min(tried, key=lambda evaluation: evaluation.time_ms)
        moved = here.status == "correct"  # neighbours of failing configurations often fail
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
    """Return the configuration after a few random moves."""
    for _ in range(STEPS):
        config = rng.choice(points.neighbours(config) or [config])
    return config
