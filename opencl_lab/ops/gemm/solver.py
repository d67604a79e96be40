"""What multiplies matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.ops.gemm import estimates, ranking
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver

HYBRID = "hybrid"


class GemmSolver(Solver[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    name = "gemm"
    choices: ClassVar[Mapping[str, str]] = {
        HYBRID: "it is NumPy's BLAS or the device's best algorithm, for arrays of the host, and "
        "has no kernels of its own; name an algorithm that has"
    }
    multiples: ClassVar[Mapping[str, float]] = {"blocked": 3, "tiled": 25, "naive": 40}
    registry: ClassVar[Registry] = {
        "gemv": "opencl_lab.ops.gemm.thin.gemv:Gemv",
        "direct": "opencl_lab.ops.gemm.direct:Direct",
        "packed": "opencl_lab.ops.gemm.packed.algorithm:Packed",
        "blocked": "opencl_lab.ops.gemm.blocked.algorithm:Blocked",
        "tensor": "opencl_lab.ops.gemm.tensor.algorithm:Tensor",
        "tiled": "opencl_lab.ops.gemm.textbook:TiledProduct",
        "naive": "opencl_lab.ops.gemm.textbook:NaiveProduct",
    }

    def ranked(self, problem: GemmProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the algorithms by the shape of the product, see `ranking`."""
        first = ranking.ranked(problem, device)
        return (*(name for name in first if name in self.registry), *self.registry)

    def promising(self, problem: GemmProblem, device: Device) -> Iterable[str]:
        """Return the algorithms that may be the fastest."""
        likely = ranking.promising(problem, device)
        return tuple(name for name in likely if name in self.registry)

    def serial_us(self, problem: GemmProblem) -> float:
        """Return the estimated microseconds on one thread."""
        return estimates.serial_us(problem)

    def parallel_us(self, problem: GemmProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return estimates.parallel_us(problem, units)


GEMM_SOLVER = GemmSolver()
