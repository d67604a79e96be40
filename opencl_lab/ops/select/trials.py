"""Trials of selecting keys, for the self-test of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from opencl_lab.ops.select.functions import searchsorted, topk
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.select.solver import TOPK_SOLVER, UNIQUE_SOLVER
from opencl_lab.ops.select.unique import unique
from opencl_lab.ops.sort.trials import random_keys
from opencl_lab.ops.trial import Task, Trial, Trials

SINGLE = np.dtype(np.float32)
TYPES = ("float32", "int64", "int32", "uint8", "float64")
MANY = 70_001
"""Keys of a first use, which are float32."""
TOPK = ((3, 1_001, 7), (1, MANY, 500), (2, 300, 200))
"""Rows, keys of each, and how many to find."""


def _topk(dtype: str, rows: int, n: int, k: int, rng: np.random.Generator) -> Task:
    keys = random_keys(rng, dtype, (rows, n))
    places = np.argsort(keys, axis=-1, kind="stable")[:, :k]
    values = np.take_along_axis(keys, places, -1)
    return Task(partial(topk, k=k, largest=False), (keys,), (values, places))


def _unique(dtype: str, n: int, rng: np.random.Generator) -> Task:
    keys = rng.choice(random_keys(rng, dtype, 911), n)
    return Task(partial(unique, return_counts=True), (keys,), np.unique(keys, return_counts=True))


def _searched(dtype: str, n: int, rng: np.random.Generator) -> Task:
    keys, values = np.sort(random_keys(rng, dtype, n)), random_keys(rng, dtype, 4_097)
    right = np.searchsorted(keys, values, side="right")
    return Task(partial(searchsorted, side="right"), (keys, values), (right,))


def _by_size(what: str, task: Callable[..., Task], *sizes: int) -> Iterator[Trial]:
    for dtype, n in product(TYPES, sizes):
        full = dtype != SINGLE.name or n != max(sizes)
        yield Trial(f"{n:,} {what} of {dtype}", partial(task, dtype, n), dtype, True, full)


def _topk_trials() -> Iterator[Trial]:
    for dtype, (rows, n, k) in product(TYPES, TOPK):
        full = dtype != SINGLE.name or n != MANY
        title = f"{k} of {rows} x {n:,} keys of {dtype}"
        yield Trial(title, partial(_topk, dtype, rows, n, k), dtype, True, full)


TRIALS = (
    Trials(TOPK_SOLVER, tuple(_topk_trials())),
    Trials(UNIQUE_SOLVER, tuple(_by_size("keys", _unique, 4_097, MANY))),
    Trials(SEARCH, tuple(_by_size("sorted keys", _searched, 5_003)), only="binary-search"),
)
