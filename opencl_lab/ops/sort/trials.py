"""Trials of sorting."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.functions import argsort, sort, sort_by_key
from opencl_lab.ops.sort.gather import GATHER
from opencl_lab.ops.sort.merge_runs import MERGE, merge_runs
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.ops.trial import Array, Drawer, Task, Trial, Trials

ODD_SIZES = {"n": 20_011, "rows": 3}
"""Sizes above every tile, and multiples of none."""
MANY = 70_001
"""More keys than the turns that some drivers let a loop make, odd around tiles."""


def awkward_keys(rng: np.random.Generator, dtype: str, shape: int | tuple[int, ...]) -> Array:
    """Return keys of all bits; floats among them NaN, infinities, both zeros and subnormals."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind in "mM":
        return awkward_keys(rng, "int64", shape).view(kind)
    count = int(np.prod(shape)) * kind.itemsize
    keys = np.frombuffer(rng.bytes(count), kind).reshape(shape).copy()
    if kind.kind == "f":
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(kind).tiny / 2, 1, -1], kind)
        keys[np.isnan(keys)] = np.nan  # NumPy keeps the bits of each NaN, in no order
        keys.flat[::5] = rng.choice(odd, keys.flat[::5].size)
    return keys


def order_of(keys: Array, descending: bool = False) -> Array:
    """Return the places of keys in their order, equal ones in that of their places."""
    return np.argsort(codes(np.ascontiguousarray(keys), descending), axis=-1, kind="stable")


def _sorted(dtype: str, shape: int | tuple[int, ...], rng: np.random.Generator) -> Task:
    keys = awkward_keys(rng, dtype, shape)
    return Task(partial(sort), (keys,), (np.sort(keys, kind="stable"),))


def _reversed(dtype: str, n: int, rng: np.random.Generator) -> Task:
    keys = awkward_keys(rng, dtype, n)
    right = keys[order_of(keys, descending=True)]
    return Task(partial(sort, descending=True), (keys,), (right,))


def _ordered(
    dtype: str, shape: tuple[int, ...], descending: bool, rng: np.random.Generator
) -> Task:
    keys = awkward_keys(rng, dtype, shape)
    right = order_of(keys, descending)
    return Task(partial(argsort, descending=descending), (keys,), (right,))


def _strided(dtype: str, rng: np.random.Generator) -> Task:
    keys = awkward_keys(rng, dtype, (61, 90))
    order = order_of(keys[1::2, ::3], descending=True)

    def call(x: Any, **how: Any) -> Any:
        return argsort(x[1::2, ::3], descending=True, **how)

    return Task(call, (keys,), (order,))


def _pairs(dtype: str, rng: np.random.Generator, n: int = 5_000) -> Task:
    keys = rng.choice(awkward_keys(rng, dtype, 300), n)
    values = rng.permutation(n).astype(np.int16)
    order = np.argsort(keys, kind="stable")
    return Task(partial(sort_by_key), (keys, values), (keys[order], values[order]))


def _equal(dtype: str, rng: np.random.Generator, n: int = MANY) -> Task:
    return Task(partial(argsort), (np.full(n, awkward_keys(rng, dtype, 1)),), (np.arange(n),))


def _gathered(rng: np.random.Generator) -> Task:
    keys, values = awkward_keys(rng, "int16", 3_001), rng.integers(0, 99, (3_001, 3), np.int32)
    order = np.argsort(keys, kind="stable")

    def call(keys: Any, values: Any, **how: Any) -> Any:
        triples = values.view(np.dtype("V12")).reshape(3_001)
        return sort_by_key(keys, triples, **how)[1].view(np.int32)

    return Task(call, (keys, values), (values[order].ravel(),))


def _merged(dtype: str, rng: np.random.Generator) -> Task:
    runs = [np.sort(awkward_keys(rng, dtype, n), kind="stable") for n in (MANY, 99, 20_000)]
    keys = np.concatenate(runs)

    def call(keys: Any, **how: Any) -> Any:
        return merge_runs([keys], [run.size for run in runs], **how)[0]

    return Task(call, (keys,), (np.sort(keys, kind="stable"),))


def _draw(d: Drawer) -> Trial:
    dtype, n, rows = d.dtype(KEY_TYPES), d.size(200_000), (d.size(40), d.size(3_000))
    task: Any = d.pick(
        (
            partial(_sorted, dtype, d.pick((n, rows))),
            partial(_reversed, dtype, n),
            partial(_ordered, dtype, d.pick(((n,), rows)), d.chance(0.5)),
            partial(_pairs, dtype, n=d.size(30_000)),
            partial(_equal, dtype, n=n),
            partial(_strided, dtype),
        )
    )
    return Trial(f"{n:,} or {rows[0]} x {rows[1]} keys of {dtype}", task, dtype, True)


def _draw_runs(d: Drawer) -> Trial:
    dtype = d.dtype(KEY_TYPES)
    return Trial(f"runs of {dtype}", partial(_merged, dtype), dtype, True)


QUICK = tuple(
    Trial(f"{n:,} keys of {dtype}", partial(_sorted, dtype, n), dtype, True)
    for dtype, n in (("int32", 4_097), ("int32", MANY), ("float64", MANY))
)
RUNS = tuple(
    Trial(f"runs of {dtype}", partial(_merged, dtype), dtype, True)
    for dtype in ("int32", "float64")
)
GATHERED = (Trial("values of 12 bytes", _gathered, "int16", True),)
TRIALS = (
    Trials(SORT_SOLVER, QUICK, (SortProblem(MANY, np.dtype(np.int32)),), draw=_draw),
    Trials(GATHER, GATHERED, only="words"),
    Trials(MERGE, RUNS, only="merge-path", draw=_draw_runs),
)
