"""Trials of Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.ops.fft.functions import fourier
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.functions.fourier import fft2, ifft, irfft, rfft
from opencl_lab.ops.fft.problem import NORMS, DftProblem
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.ops.gemm.trials import random_numbers
from opencl_lab.ops.trial import Drawer, Task, Trial, Trials

LENGTHS = {1_009: False, 30_030: False}
LENGTHS |= dict.fromkeys((60, 97, 169, 2_310, 4_096, 4_913, 12_345, 16_384, 65_536, 70_001), True)
"""Small radices, primes and their products; whether a first use leaves them out."""
MANY_ROWS = 128
"""So many are convolved one by one on all but the largest CPUs."""
LONGEST_SUM = 1 << 13
DOUBLE = np.dtype(np.complex128)
NAMES = (
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"),
    *("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"),
)
"""Transforms that NumPy has, too."""
COMPLEX = {"float32": "complex64", "float64": "complex128"}


def _rows(dtype: str, n: int, rng: np.random.Generator, rows: int = 3) -> Task:
    x = random_numbers(rng, dtype, (rows, n))

    def call(x: Any, algorithm: str = "auto", **how: Any) -> Any:
        if n > LONGEST_SUM and algorithm.startswith("direct"):
            raise InvalidConfig("sums of so many numbers take too long for a test")
        return dft(x, algorithm=algorithm, **how)

    return Task(call, (x,), (np.fft.fft(x.astype(np.complex128)).astype(dtype),))


def _real(dtype: str, rng: np.random.Generator) -> Task:
    x = random_numbers(rng, dtype, (5, 1_500))
    return Task(rfft, (x,), (np.fft.rfft(x.astype(np.float64)).astype(COMPLEX[dtype]),))


def _to_real(dtype: str, rng: np.random.Generator) -> Task:
    x = np.fft.rfft(random_numbers(rng, dtype, (5, 1_500)))
    return Task(irfft, (x.astype(COMPLEX[dtype]),), (np.fft.irfft(x).astype(dtype),))


def _axes(dtype: str, rng: np.random.Generator) -> Task:
    x = random_numbers(rng, COMPLEX[dtype], (36, 70))
    return Task(fft2, (x,), (np.fft.fft2(x.astype(np.complex128)).astype(x.dtype),))


def _strided(dtype: str, rng: np.random.Generator) -> Task:
    x = random_numbers(rng, COMPLEX[dtype], (50, 96))

    def call(x: Any, **how: Any) -> Any:
        return ifft(x[::3, 1::2], axis=0, **how)

    right = np.fft.ifft(x[::3, 1::2].astype(np.complex128), axis=0)
    return Task(call, (x,), (right.astype(x.dtype),))


def _axes_of(name: str, dtype: str, shape: tuple[int, ...], norm: Any, rng: Any) -> Task:
    """Return a transform of the names that NumPy has, too."""
    kind = dtype if name.startswith("r") or name == "ihfft" else COMPLEX[dtype]
    x = random_numbers(rng, kind, shape)
    right = getattr(np.fft, name)(x.astype("f8" if kind == dtype else DOUBLE), norm=norm)
    right = right.astype(COMPLEX[dtype] if right.dtype.kind == "c" else dtype)
    return Task(partial(getattr(fourier, name), norm=norm), (x,), (right,))


def _draw(d: Drawer) -> Trial:
    dtype, norm = d.dtype(tuple(COMPLEX)), d.pick(NORMS)
    name = d.pick(NAMES)
    shape: tuple[int, ...] = (d.size(8), d.pick((d.size(70_000, 2), 2 << d.size(15))))
    if name.endswith(("2", "n")):
        shape = tuple(d.size(60, 2) for _ in range(d.pick((2, 3))))
    title = f"{name} of {dtype}, {shape}, {norm}"
    return Trial(title, partial(_axes_of, name, dtype, shape, norm), dtype)


def _draw_sum(d: Drawer) -> Trial:
    dtype, n, rows = d.dtype(tuple(COMPLEX.values())), d.size(700), d.size(8)
    return Trial(f"sums of {rows} x {n} of {dtype}", partial(_rows, dtype, n, rows=rows), dtype)


def _trials() -> Iterator[Trial]:
    for dtype in COMPLEX.values():
        for n, full in LENGTHS.items():
            yield Trial(f"3 x {n:,} of {dtype}", partial(_rows, dtype, n), dtype, full=full)
        many = partial(_rows, dtype, 131, rows=MANY_ROWS)
        yield Trial(f"{MANY_ROWS} x 131 of {dtype}", many, dtype, full=dtype == "float64")


def _fast_trials() -> Iterator[Trial]:
    for dtype in COMPLEX:
        for title, task, full in (
            ("rfft", _real, True),
            ("irfft", _to_real, True),
            ("fft2", _axes, True),
            ("strided ifft along the first axis", _strided, dtype == "float64"),
        ):
            yield Trial(f"{title} of {dtype}", partial(task, dtype), dtype, full=full)


TRIALS = (
    Trials(
        DFT_SOLVER, tuple(_trials()), (DftProblem(4_096), DftProblem(4_096, DOUBLE)), draw=_draw_sum
    ),
    Trials(DFT_SOLVER, tuple(_fast_trials()), only="fft", draw=_draw),
)
