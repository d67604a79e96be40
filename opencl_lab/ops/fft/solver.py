"""What transforms signals, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.ops.fft import estimates
from opencl_lab.ops.fft.passes.forms import planner_for
from opencl_lab.ops.fft.problem import DftProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver

DIRECT = "direct"
"""Stands for the fastest algorithm that follows the definition."""
FAST = "fast"
"""Stands for the fast transform, whatever the length."""
FEW_TERMS = 1 << 20
"""Terms of direct sums up to which they beat Bluestein's convolution on GPUs, as measured: one row
of about 1,000 samples, 64 of 127."""
FEW_TERMS_OF_A_ROW = 1 << 18
"""The same for a single row on CPUs; more rows are convolved one by one, which is faster."""


class DftSolver(Solver[DftProblem]):
    """The discrete Fourier transform, by its definition and fast."""

    name = "dft"
    registry: ClassVar[Registry] = {
        "fft": "opencl_lab.ops.fft.fast:FftAlgorithm",
        "direct-tiled": "opencl_lab.ops.fft.direct:DirectTiled",
        "direct-naive": "opencl_lab.ops.fft.direct:DirectNaive",
    }
    groups = (AUTO, DIRECT, FAST)

    def ranked(self, problem: DftProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return all algorithms, those that follow the definition, or the fast transform.

        The fast transform loses where its length needs a convolution and the sums are short.
        """
        direct = ("direct-tiled", "direct-naive")
        if group == DIRECT:
            return direct
        if group == FAST:
            return ("fft",)
        planner = planner_for(device)
        alone = problem.count == 1 and device.compute_units > 1
        few = FEW_TERMS if planner.cooperative else FEW_TERMS_OF_A_ROW * alone
        convolved = not planner.has_passes(problem.n, problem.count)
        short = convolved and problem.terms <= few
        return (*direct, *self.registry) if short else self.registry

    def serial_us(self, problem: DftProblem) -> float:
        """Return the estimated microseconds of fast transforms on one thread."""
        return estimates.serial_us(problem)

    def parallel_us(self, problem: DftProblem, units: int) -> float:
        """Return the estimated microseconds of fast transforms on `units` threads."""
        return estimates.parallel_us(problem, units)

    def estimates_us(
        self, problem: DftProblem, units: int, algorithm: str = AUTO
    ) -> tuple[float, float]:
        """Return those of fast transforms, or of direct sums for algorithms that follow these."""
        if algorithm in (AUTO, FAST, "fft"):
            return super().estimates_us(problem, units, algorithm)
        alone = estimates.direct_us(problem, algorithm)
        return alone, alone / units


DFT_SOLVER = DftSolver()
