"""The definition as one matrix product: direct-gemm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import WIDEN
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.passes.rows import widened
from opencl_lab.ops.fft.passes.twiddles import roots_of_unity
from opencl_lab.ops.fft.problem import DftProblem, builder_of, too_many_terms
from opencl_lab.ops.gemm.blocked.algorithm import Blocked
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.solver import Algorithm

LONGEST = 512
"""Most samples: beyond, rounding errors of a plain sum come near the tolerance."""


def product_table(n: int, inverse: bool, kind: str, real: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the real matrix, row by row, that transforms rows of n numbers.

    A complex number is a pair ``(re, im)``, and each root w the block
    ``((re w, im w), (-im w, re w))``, so that the matrix is 2n x 2n. Where one side is real, it has
    no imaginary components, and the other one no frequencies above n / 2. In a c2r these are
    accounted for by their mirror images: all count twice but 0 and n / 2, which are real.
    """
    powers = np.arange(n, dtype=np.int64)
    bins = powers if kind == "c2c" else powers[: n // 2 + 1]
    rows, columns = (bins if kind == "c2r" else powers), (bins if kind == "r2c" else powers)
    roots = roots_of_unity(np.outer(rows, columns), n)
    roots = roots.conj() if inverse else roots
    matrix = np.empty((len(rows), 2, len(columns), 2), real)
    matrix[:, 0, :, 0] = matrix[:, 1, :, 1] = roots.real
    matrix[:, 0, :, 1], matrix[:, 1, :, 0] = roots.imag, -roots.imag
    if kind == "r2c":
        matrix = matrix[:, :1]
    elif kind == "c2r":
        twice = (bins > 0) & (2 * bins != n)
        matrix = matrix[:, :, :, :1] * np.stack([1 + twice, 2 * twice], 1)[:, :, None, None]
    return matrix.reshape(-1).astype(real, copy=False)


class DirectGemm(Algorithm[DftProblem]):
    """A batch times the matrix of roots, by the kernel of `gemm`.

    A complex row is a real row of twice the length in memory, so nothing is rearranged. Half
    precision is widened first. The configuration is that of the same product by `gemm`, tuned
    or built in.
    """

    name = "direct-gemm"
    templates = (*Blocked.templates, WIDEN)
    space = Blocked.space

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need rows that are short enough, and what the product needs."""
        if problem.inner != 1:
            return "it transforms contiguous rows only"
        if problem.n > LONGEST:
            return f"sums of more than {LONGEST} samples would not be accurate enough"
        return _blocked().supports(_product(problem), device)

    def too_slow(self, problem: DftProblem) -> str | None:
        """Return why it is too slow: long sums, where other direct algorithms are better."""
        return None if problem.many_short_rows else too_many_terms(problem)

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return the configuration of `gemm` for this product."""
        return _blocked().configure(_product(problem), device)

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan the product, with a table as the second matrix."""
        product = _product(problem)
        builder = builder_of(problem)
        signal = widened(builder, device, "signal")
        table = (problem.n, problem.inverse, problem.kind, problem.real)
        roots = builder.table("roots", product.k * product.n, problem.real, product_table, *table)
        names = {"a": signal, "b": roots, "result": "spectrum"}
        plan = _blocked().plan(product, config, device)
        for own in plan.with_role("scratch"):
            names[own.name] = builder.scratch(own.name, math.prod(own.shape), own.dtype)
        for own in plan.with_role("zeros"):
            names[own.name] = builder.zeros(own.name, math.prod(own.shape))
        builder.launches += [launch.renamed(names) for launch in plan.launches]
        return builder.finish()


def _blocked() -> Algorithm[Any]:
    return GEMM_SOLVER.algorithm(Blocked.name)


def _product(problem: DftProblem) -> GemmProblem:
    rows, columns = (
        shape[1] * (2 if dtype.kind == "c" else 1)
        for shape, dtype in (problem.signal, problem.spectrum)
    )
    return GemmProblem(problem.batch, columns, rows, problem.real, alpha=problem.scale)
