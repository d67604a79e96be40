"""What multiplies matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, cast

from opencl_lab.core.device import Device
from opencl_lab.ops.gemm import estimates, ranking
from opencl_lab.ops.gemm.launches import Product
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver

HYBRID = "hybrid"
SPECIAL = {"tensor": "matrix_units"}
"""Algorithms for units that few devices have, with the capability that a device has then."""


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
        special = [
            name
            for name, unit in SPECIAL.items()
            if getattr(device.capabilities, unit)
            and cast(Product, self.algorithm(name)).pays(problem, device)
        ]
        return (*ranking.ranked(problem, device, special), *self.registry)

    def serial_us(self, problem: GemmProblem) -> float:
        """Return the estimated microseconds on one thread."""
        return estimates.serial_us(problem)

    def parallel_us(self, problem: GemmProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return estimates.parallel_us(problem, units)


GEMM_SOLVER = GemmSolver()
