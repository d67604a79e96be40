"""Trials of Fourier transforms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.ops.fft.functions import fourier
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.functions.fourier import ifft
from opencl_lab.ops.fft.problem import NORMS, DftProblem
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.ops.gemm.trials import random_numbers
from opencl_lab.ops.trial import Drawer, Task, Trial, Trials

SMOOTH, PRIME = 6_006, 5_003
"""Lengths above every tile: a product of small primes, and a prime."""
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
    dtype, rows = d.dtype(tuple(COMPLEX.values())), d.size(8)
    n = d.pick((d.size(700), d.size(70_000)))
    return Trial(f"{rows} x {n} of {dtype}", partial(_rows, dtype, n, rows=rows), dtype)


QUICK = (
    *(
        Trial(f"3 x {n:,} of {dtype}", partial(_rows, dtype, n), dtype)
        for dtype in COMPLEX.values()
        for n in (PRIME, 5 * SMOOTH)
    ),
    Trial(
        f"{MANY_ROWS} x 131 of complex64",
        partial(_rows, "complex64", 131, rows=MANY_ROWS),
        "complex64",
    ),
)
STRIDED = Trial("strided ifft along the first axis", partial(_strided, "float32"), "float32")
TYPICAL = DftProblem(4_096), DftProblem(4_096, DOUBLE)
TRIALS = (
    Trials(DFT_SOLVER, QUICK, TYPICAL, draw=_draw_sum),
    Trials(DFT_SOLVER, (STRIDED,), only="fft", draw=_draw),
)
