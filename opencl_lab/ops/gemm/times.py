"""How long a product takes on one thread, and on several, to choose between both.

The constants were measured on two cores of an AMD EPYC (Zen 5) with vectors of 64 bytes, with PoCL.
"""

from __future__ import annotations

from opencl_lab.core.kernels import largest_power
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.gemm.problem import GemmProblem

VECTOR_BYTES = 64
FLOPS = 240e3
"""Operations per microsecond of one thread, in float32."""
READ, WRITTEN = 110e3, 85e3
"""Bytes per microsecond of one thread: of a matrix that is read once; of all matrices, at most."""
FEW = 16
"""Most rows or columns with which `gemv` may be faster."""
STORE, COPY, PRODUCT = 4e-4, 1.5e-4, 8e-3
"""Microseconds for a vector of results, for a number of B that is copied, for each product."""
UNEVEN, SHARING = 1.1, 8.0
"""How much longer the slowest of several threads takes than their mean, and the microseconds to
divide a product among them."""


def serial_us(problem: GemmProblem) -> float:
    """Return the microseconds of a product on one thread: by `direct`, or by `gemv` if less."""
    size = problem.sum_type.itemsize // problem.components
    arithmetic = problem.work.flops / (FLOPS * 4 / size)
    line = max(1, problem.n) * problem.components
    width = largest_power(16, VECTOR_BYTES // size, line)
    vectors = ceil_divide(line, width)
    filled = line / (vectors * (VECTOR_BYTES // size))
    copied = problem.k * line * problem.batch * (problem.trans_b or problem.is_complex)
    stored = STORE * vectors * problem.m * problem.batch
    direct = max(arithmetic / filled + stored + COPY * copied, problem.work.bytes / WRITTEN)
    direct += PRODUCT * problem.batch
    if min(problem.m, problem.n) > FEW:
        return direct
    matrix = max(problem.m, problem.n) * problem.k * problem.batch * problem.dtype.itemsize
    return min(direct, matrix / READ + arithmetic + PRODUCT * problem.batch)


def parallel_us(problem: GemmProblem, units: int) -> float:
    """Return the microseconds of a product on so many threads, without the launch."""
    return UNEVEN * serial_us(problem) / units + SHARING
