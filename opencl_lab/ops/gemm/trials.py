"""Trials of matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.trial import Array, Drawer, Task, Trial, Trials

ODD_SIZES = {"m": 271, "n": 331, "k": 523}
"""Sizes above every tile, and multiples of none."""
TILES, FEW = (67, 129, 257), (3, 250, 515)
SMALL = (8, 8, 8)  # vectors without a remainder: wrong on Intel's CPU runtime before 2025.3
"""Rows, columns and lengths of sums, odd around tiles but for one."""
TYPES = ("float32", "float64", "complex64", "float16", "complex128", "int8", "int32", "uint64")
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
    return Task(partial(gemm), (a, b), ((_exact(a) @ _exact(b)).astype(dtype),))


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


def _draw(d: Drawer) -> Trial:
    dtype = d.dtype(TYPES)
    kind = np.dtype(dtype).kind
    m, n, k = (d.size(60 if kind == "c" else 300) for _ in range(3))
    if dtype in ("float32", "float64") and d.chance(0.2):
        m, n, k = m // 3 + 1, n // 3 + 1, d.size(70_000)
    trans, special = (d.chance(0.5), d.chance(0.5)), dtype != "float16" and d.chance(0.3)
    alpha, beta = (d.pick((1, 2)), 3) if kind in "iu" else (d.pick((1.0, -0.5)), d.pick((0.0, 2.0)))
    tasks: list[Any] = [
        partial(_turned, dtype, m, n, k, trans=trans, alpha=alpha, beta=beta),
        partial(_plain, dtype, m, n, k),
    ]
    if kind == "f":
        tasks += [partial(_stack, dtype, (d.size(9), m, n, min(k, 300)), special)]
    if dtype == "float32":
        tasks += [_strided]
    return Trial(f"{m} x {n} x {k} of {dtype}, {trans}, {alpha}, {beta}", d.pick(tasks), dtype)


def _quick() -> Iterator[Trial]:
    shapes = ("float32", SMALL), ("float32", FEW), ("float64", FEW), ("float64", TILES)
    for dtype, shape in (*shapes, ("complex64", TILES)):
        title = f"{' x '.join(map(str, shape))} of {dtype}"
        yield Trial(title, partial(_plain, dtype, *shape), dtype)
    yield Trial("transposed tiles of float32", partial(_turned, "float32", *TILES), "float32")
    yield Trial("strided float32 with a bias and gelu", _strided, "float32")


TYPICAL = tuple(
    GemmProblem(m, n, n, np.dtype(dtype))
    for dtype in ("float32", "float64")
    for m, n in ((1, 3_000), (200, 200), (3_000, 3_000))
)
TRIALS = (Trials(GEMM_SOLVER, tuple(_quick()), TYPICAL, draw=_draw),)
