"""Trials of selecting keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opencl_lab.ops.select.functions import searchsorted, topk
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.select.solver import TOPK_SOLVER, UNIQUE_SOLVER
from opencl_lab.ops.select.unique import unique
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.problem import KEY_TYPES
from opencl_lab.ops.sort.trials import awkward_keys
from opencl_lab.ops.trial import Drawer, Task, Trial, Trials

MANY, SIDES = 70_001, ("left", "right")


def _topk(
    dtype: str, rows: int, n: int, k: int, rng: np.random.Generator, largest: bool = False
) -> Task:
    keys = awkward_keys(rng, dtype, (rows, n))
    ranks = codes(keys)  # NaN counts as the largest key
    places = np.argsort(~ranks if largest else ranks, axis=-1, kind="stable")[:, :k]
    values = np.take_along_axis(keys, places, -1)
    return Task(partial(topk, k=k, largest=largest), (keys,), (values, places))


def _unique(dtype: str, n: int, rng: np.random.Generator) -> Task:
    keys = rng.choice(awkward_keys(rng, dtype, 911), n)
    return Task(partial(unique, return_counts=True), (keys,), np.unique(keys, return_counts=True))


def _searched(
    dtype: str, n: int, rng: np.random.Generator, m: int = 4_097, side: Any = "right"
) -> Task:
    keys, values = np.sort(awkward_keys(rng, dtype, n)), awkward_keys(rng, dtype, m)
    right = np.searchsorted(keys, values, side=side)
    return Task(partial(searchsorted, side=side), (keys, values), (right,))


def _draw_topk(d: Drawer) -> Trial:
    dtype, rows, n, largest = d.dtype(KEY_TYPES), d.size(20), d.size(20_000), d.chance(0.5)
    k = d.size(min(n, 2_000))
    task = partial(_topk, dtype, rows, n, k, largest=largest)
    return Trial(f"{k} of {rows} x {n:,} keys of {dtype}", task, dtype, True)


def _draw_unique(d: Drawer) -> Trial:
    dtype, n = d.dtype(KEY_TYPES), d.size(200_000)
    return Trial(f"{n:,} keys of {dtype}", partial(_unique, dtype, n), dtype, True)


def _draw_search(d: Drawer) -> Trial:
    dtype, n, m, side = d.dtype(KEY_TYPES), d.size(200_000), d.size(50_000), d.pick(SIDES)
    task = partial(_searched, dtype, n, m=m, side=side)
    return Trial(f"{m:,} among {n:,} sorted keys of {dtype}, {side}", task, dtype, True)


def _quick(title: str, task: Any) -> tuple[Trial, ...]:
    """Return the trial of a first use, of float32."""
    return (Trial(f"{title} of float32", task, "float32", True),)


TOPK = _quick(f"500 of {MANY:,} keys", partial(_topk, "float32", 1, MANY, 500))
TRIALS = (
    Trials(TOPK_SOLVER, TOPK, draw=_draw_topk),
    Trials(
        UNIQUE_SOLVER, _quick("many keys", partial(_unique, "float32", MANY)), draw=_draw_unique
    ),
    Trials(
        SEARCH,
        _quick("sorted keys", partial(_searched, "float32", 5_003)),
        only="binary-search",
        draw=_draw_search,
    ),
)
