"""Matrix products: the problem, its algorithms, the operation, and the public function."""

from opencl_lab.operations.gemm.algorithms import Blocked, Naive, Tiled
from opencl_lab.operations.gemm.functions import gemm
from opencl_lab.operations.gemm.operation import GEMM, Gemm
from opencl_lab.operations.gemm.problem import GemmProblem

__all__ = ["GEMM", "Blocked", "Gemm", "GemmProblem", "Naive", "Tiled", "gemm"]
