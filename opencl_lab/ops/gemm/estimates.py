"""Estimated times of a product on the threads of a CPU: see `opencl_lab.ops.estimates`."""

from __future__ import annotations

from opencl_lab.core.kernels import largest_power
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.estimates import VECTOR_BYTES
from opencl_lab.ops.gemm.problem import GemmProblem

FLOPS_PER_US = 240e3
"""Operations of one thread, in float32."""
READ_PER_US, MOVED_PER_US = 110e3, 85e3
"""Bytes of one thread: of a matrix that is read once; of all matrices, at most."""
FEW = 16
"""Most rows or columns with which `gemv` may be faster."""
STORE_US, COPY_US, PRODUCT_US = 4e-4, 1.5e-4, 8e-3
"""A vector of results; a number of B that is copied; each product."""
UNEVEN = 1.1
"""Time of the slowest of several threads as a multiple of their mean."""
SHARE_US = 8.0
"""To divide a product among threads."""


def serial_us(problem: GemmProblem) -> float:
    """Return the microseconds on one thread: by `direct`, or by `gemv` if less."""
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
    if min(problem.m, problem.n) > FEW:
        return direct
    matrix = max(problem.m, problem.n) * problem.k * problem.batch * problem.dtype.itemsize
    return min(direct, matrix / READ_PER_US + arithmetic + PRODUCT_US * problem.batch)


def parallel_us(problem: GemmProblem, units: int) -> float:
    """Return the microseconds on `units` threads."""
    return UNEVEN * serial_us(problem) / units + SHARE_US
