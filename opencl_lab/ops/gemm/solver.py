"""What multiplies matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, cast

from opencl_lab.core.device import Device
from opencl_lab.ops.gemm import estimates, ranking
from opencl_lab.ops.gemm.launches import Product
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver

HYBRID = "hybrid"
SPECIAL = {"tensor": "matrix_units"}
"""Algorithms for units that few devices have, with the capability that a device has then."""
SMALL = 1 << 24
"""Multiplications up to which a textbook algorithm may be the fastest."""


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

    def _special(self, device: Device) -> Iterator[tuple[str, Product]]:
        """Yield the algorithms for special units that a device has, with their names."""
        for name, unit in SPECIAL.items():
            if getattr(device.capabilities, unit):
                yield name, cast(Product, self.algorithm(name))

    def ranked(self, problem: GemmProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the algorithms by the shape of the product, see `ranking`."""
        special = [name for name, item in self._special(device) if item.pays(problem, device)]
        return (*ranking.ranked(problem, device, special), *self.registry)

    def promising(self, problem: GemmProblem, device: Device) -> Iterable[str]:
        """Return the algorithms without the textbook ones, which are far from the fastest.

        For small products they are included, as all are about equally fast.
        """
        special = [name for name, _ in self._special(device)]
        names = (*ranking.ranked(problem, device), *special)
        if problem.m * problem.n * problem.k * problem.batch <= SMALL:
            return names
        return tuple(name for name in names if name not in ("naive", "tiled"))

    def serial_us(self, problem: GemmProblem) -> float:
        """Return the estimated microseconds on one thread."""
        return estimates.serial_us(problem)

    def parallel_us(self, problem: GemmProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return estimates.parallel_us(problem, units)


GEMM_SOLVER = GemmSolver()
