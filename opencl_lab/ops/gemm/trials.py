"""Trials of matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.trial import Array, Drawer, Task, Trial, Trials

TILES, FEW, LONG = (67, 129, 257), (3, 250, 515), (129, 131, 70_001)
SMALL = (8, 8, 8)  # vectors without a remainder: wrong on Intel's CPU runtime before 2025.3
SHAPES = (TILES, FEW, LONG, SMALL, (260, 261, 130), (131, 1, 1_025), (1, 77, 4_099))
"""Rows, columns and lengths of sums, odd around tiles but for one."""
TYPES = ("float32", "float64", "complex64", "float16", "complex128", "int8", "int32", "uint64")
QUICK = {
    ("float32", SMALL),
    ("float32", FEW),
    ("float64", FEW),
    ("float64", TILES),
    ("complex64", TILES),
}
"""What a first use tries, besides transposed tiles of float32."""


SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42)


def random_numbers(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool = False
) -> Array:
    """Return normally distributed numbers, with some `SPECIALS` if wanted, or small integers."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return rng.integers(0, 100, shape).astype(kind)
    numbers = rng.standard_normal(shape)
    if kind.kind == "c":
        return (numbers + 1j * rng.standard_normal(shape)).astype(kind)
    if special:
        numbers.flat[rng.integers(numbers.size, size=3)] = rng.choice(SPECIALS, 3)
    return numbers.astype(kind)


def _exact(array: Array) -> Array:
    """Return numbers in the type in which right results are computed."""
    if array.dtype.kind in "iu":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _plain(dtype: str, m: int, n: int, k: int, rng: np.random.Generator) -> Task:
    a, b = random_numbers(rng, dtype, (m, k)), random_numbers(rng, dtype, (k, n))
    return Task(gemm, (a, b), ((_exact(a) @ _exact(b)).astype(dtype),))


def _turned(
    dtype: str,
    m: int,
    n: int,
    k: int,
    rng: np.random.Generator,
    trans: tuple[bool, bool] = (True, True),
    alpha: float = 2,
    beta: float = 3,
) -> Task:
    shapes = (k, m) if trans[0] else (m, k), (n, k) if trans[1] else (k, n), (m, n)
    arrays = tuple(random_numbers(rng, dtype, shape) for shape in shapes)
    a, b, c = map(_exact, arrays)

    def call(a: Any, b: Any, c: Any, **how: Any) -> Any:
        how |= {"trans_a": trans[0], "trans_b": trans[1]}
        return gemm(a, b, c=c, alpha=alpha, beta=beta, **how)

    product = (a.T if trans[0] else a) @ (b.T if trans[1] else b)
    return Task(call, arrays, ((alpha * product + beta * c).astype(dtype),))


def _stack(dtype: str, shape: tuple[int, ...], special: bool, rng: np.random.Generator) -> Task:
    rows, m, n, k = shape
    a, b = (random_numbers(rng, dtype, (rows, *s), special) for s in ((m, k), (k, n)))
    with np.errstate(invalid="ignore"):
        right = np.maximum(_exact(a) @ _exact(b), 0).astype(dtype)
    return Task(partial(gemm, activation="relu"), (a, b), (right,))


def _strided(rng: np.random.Generator) -> Task:
    x = random_numbers(rng, "float32", (70, 150))

    def call(x: Any, **how: Any) -> Any:
        left, right, bias = x[::2, 1::2], x[1::2, ::2].T, x[1, :35]
        return gemm(left, right, bias=bias, activation="gelu", **how)

    wide = _exact(x)
    sums = wide[::2, 1::2] @ wide[1::2, ::2].T + wide[1, :35]
    right = sums / 2 * (1 + np.vectorize(math.erf)(sums / math.sqrt(2)))
    return Task(call, (x,), (right.astype(np.float32),))


def _trials() -> Iterator[Trial]:
    for dtype, shape in product(TYPES, SHAPES):
        if dtype not in ("float32", "float64") and shape not in (TILES, FEW):
            continue
        title, full = f"{' x '.join(map(str, shape))} of {dtype}", (dtype, shape) not in QUICK
        yield Trial(title, partial(_plain, dtype, *shape), dtype, full=full)
        full = (dtype, shape) != ("float32", TILES)
        yield Trial(f"{title}, transposed", partial(_turned, dtype, *shape), dtype, full=full)
    yield Trial("strided float32 with a bias and gelu", _strided, "float32", full=True)


def _draw(d: Drawer) -> Trial:
    dtype = d.dtype(ELEMENT_TYPES)
    most = 60 if dtype.startswith("complex") else 300
    m, n, k = d.size(most), d.size(most), d.size(most)
    trans, special = (d.chance(0.5), d.chance(0.5)), dtype != "float16" and d.chance(0.3)
    factors = d.pick((1.0, -0.5)), d.pick((0.0, 2.0))
    tasks: list[Any] = [
        partial(_turned, dtype, m, n, k, trans=trans, alpha=factors[0], beta=factors[1])
    ]
    if not dtype.startswith("complex"):
        tasks += [
            partial(_stack, dtype, (d.size(20), m, n, k), special),
            partial(_plain, dtype, m, n, k),
        ]
    return Trial(f"{m} x {n} x {k} of {dtype}, {trans}, {factors}", d.pick(tasks), dtype)


TYPICAL = tuple(
    GemmProblem(m, n, n, np.dtype(dtype))
    for dtype in ("float32", "float64")
    for m, n in ((1, 3_000), (200, 200), (3_000, 3_000))
)
TRIALS = (Trials(GEMM_SOLVER, tuple(_trials()), TYPICAL, draw=_draw),)
