"""What multiplies matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.solver import Homes, Solver

__all__ = ["GEMM_SOLVER", "HYBRID", "GemmSolver"]

HYBRID = "hybrid"


class GemmSolver(Solver[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    name = "gemm"
    choices: ClassVar[Mapping[str, str]] = {
        HYBRID: "it is NumPy's BLAS or the device's best algorithm, for arrays of the host, and "
        "has no kernels of its own; name an algorithm that has"
    }
    homes: ClassVar[Homes] = {
        "blocked": "opencl_lab.operations.gemm.blocked:Blocked",
        "tiled": "opencl_lab.operations.gemm.textbook:Tiled",
        "naive": "opencl_lab.operations.gemm.textbook:Naive",
    }


GEMM_SOLVER = GemmSolver()
