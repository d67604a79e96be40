"""What multiplies matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, cast

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import largest_power
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.estimates import VECTOR_BYTES
from opencl_lab.ops.gemm import ranking
from opencl_lab.ops.gemm.launches import Product
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver

HYBRID = "hybrid"
SPECIAL = {"tensor": "matrix_units"}
"""Algorithms for units that few devices have, with the capability that a device has then."""


# Estimated times on the threads of a CPU: see `opencl_lab.ops.estimates`.
FLOPS_PER_US = 240e3
"""Operations of one thread, in float32."""
READ_PER_US, MOVED_PER_US = 110e3, 85e3
"""Bytes of one thread: of a matrix that is read once; of all matrices, at most."""
GEMV_FEW = 16
"""Most rows or columns with which `gemv` may be faster."""
STORE_US, COPY_US, PRODUCT_US = 4e-4, 1.5e-4, 8e-3
"""A vector of results; a number of B that is copied; each product."""
UNEVEN = 1.1
"""Time of the slowest of several threads as a multiple of their mean."""
SHARE_US = 8.0
"""To divide a product among threads."""


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
        """Return the estimated microseconds on one thread: by `direct`, or by `gemv` if less."""
        size = problem.number_bytes
        arithmetic = problem.work.flops / (FLOPS_PER_US * 4 / size)
        line = max(1, problem.n) * problem.components
        width = largest_power(16, VECTOR_BYTES // size, line)
        vectors = ceil_divide(line, width)
        filled = line / (vectors * (VECTOR_BYTES // size))
        copied = problem.k * line * problem.batch * (problem.trans_b or problem.is_complex)
        stored = STORE_US * vectors * problem.m * problem.batch
        direct = arithmetic / filled + stored + COPY_US * copied
        direct = max(direct, problem.work.bytes / MOVED_PER_US) + PRODUCT_US * problem.batch
        if min(problem.m, problem.n) > GEMV_FEW:
            return direct
        matrix = max(problem.m, problem.n) * problem.k * problem.batch * problem.dtype.itemsize
        return min(direct, matrix / READ_PER_US + arithmetic + PRODUCT_US * problem.batch)

    def parallel_us(self, problem: GemmProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return UNEVEN * self.serial_us(problem) / units + SHARE_US


GEMM_SOLVER = GemmSolver()
