"""The definition as one matrix product: direct-gemm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.operation import Algorithm
from opencl_lab.operations.dft.problem import DftProblem, too_many_terms
from opencl_lab.operations.dft.tables import roots_of_unity
from opencl_lab.operations.gemm.algorithms import Blocked
from opencl_lab.operations.gemm.operation import GEMM
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.plan import Buffer, Launch, Plan, Table
from opencl_lab.space import Config

__all__ = ["DirectGemm"]

LONGEST = 512
"""Samples beyond which the rounding errors of a plain sum come near the tolerance."""

MANY_ROWS, SHORT = 64, 256
"""From so many rows on, of at most so many samples, a product is faster, as measured."""


def product_table(n: int, inverse: bool, real: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the matrix, 2n x 2n, that transforms rows of n pairs of real numbers.

    With ``(re, im)`` for a complex number, each root w stands there as the block
    ``((re w, im w), (-im w, re w))``.
    """
    powers = np.arange(n, dtype=np.int64)
    roots = roots_of_unity(np.outer(powers, powers), n)
    roots = roots.conj() if inverse else roots
    matrix = np.empty((n, 2, n, 2), real)
    matrix[:, 0, :, 0] = matrix[:, 1, :, 1] = roots.real
    matrix[:, 0, :, 1], matrix[:, 1, :, 0] = roots.imag, -roots.imag
    return matrix.reshape(2 * n, 2 * n)


class DirectGemm(Algorithm[DftProblem]):
    """A batch as a product by the matrix of roots, which the kernel of `gemm` multiplies.

    A complex row in memory is a real one of twice the length, so nothing is rearranged.
    The configuration is that of the same product by `gemm`, tuned where that is.
    """

    name = "direct-gemm"
    templates = Blocked.templates
    space = Blocked.space

    @staticmethod
    def pays(problem: DftProblem) -> bool:
        """Return whether a product is faster than `DirectTiled`, whose rows share no roots."""
        return problem.batch >= MANY_ROWS and problem.n <= SHORT

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need complex rows that are short enough, and what the product needs."""
        if problem.kind != "c2c" or problem.inner != 1:
            return "it transforms contiguous rows of complex numbers only"
        if problem.n > LONGEST:
            return f"sums of more than {LONGEST} samples would not be accurate enough"
        return _blocked().supports(_product(problem), device)

    def impractical(self, problem: DftProblem) -> str | None:
        """Return why few would wait for it: long sums, where it is not the best of the direct."""
        return None if self.pays(problem) else too_many_terms(problem)

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return what `gemm` takes for this product."""
        return _blocked().configure(_product(problem), device)

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan the product, its second matrix a table."""
        product = _blocked().plan(_product(problem), config, device)
        table = Table(product_table, (problem.n, problem.inverse, problem.real))
        names = {"a": "signal", "b": "roots", "result": "spectrum"}
        buffers = (
            Buffer("signal", "in", *problem.signal),
            Buffer("spectrum", "out", *problem.spectrum),
            Buffer("roots", "table", (2 * problem.n, 2 * problem.n), problem.real, table),
        )
        return Plan(buffers, tuple(_renamed(launch, names) for launch in product.launches))


def _renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    """Return a launch that works on the buffers of other names."""
    arguments = {
        name: names[value] if isinstance(value, str) else value
        for name, value in launch.arguments.items()
    }
    return replace(launch, arguments=arguments)


def _blocked() -> Algorithm[Any]:
    return GEMM.algorithm(Blocked.name)


def _product(problem: DftProblem) -> GemmProblem:
    return GemmProblem(
        problem.batch, 2 * problem.n, 2 * problem.n, problem.real, alpha=problem.scale
    )
