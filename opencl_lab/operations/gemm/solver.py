"""What multiplies matrices."""

from __future__ import annotations

from typing import ClassVar

from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.solver import Homes, Solver

__all__ = ["GEMM_SOLVER", "HYBRID", "GemmSolver"]

HYBRID = "hybrid"


class GemmSolver(Solver[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    name = "gemm"
    homes: ClassVar[Homes] = {
        "gemv": "opencl_lab.operations.gemm.gemv:Gemv",
        "packed": "opencl_lab.operations.gemm.packed:Packed",
        "blocked": "opencl_lab.operations.gemm.blocked:Blocked",
        "tensor": "opencl_lab.operations.gemm.tensor:Tensor",
        "tiled": "opencl_lab.operations.gemm.textbook:Tiled",
        "naive": "opencl_lab.operations.gemm.textbook:Naive",
    }


GEMM_SOLVER = GemmSolver()
