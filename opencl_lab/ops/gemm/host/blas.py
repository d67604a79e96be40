"""Matrix products by the BLAS that NumPy was built with, as `opencl_lab.gemm` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.ops.gemm.factors import factors
from opencl_lab.ops.gemm.problem import GemmProblem

HostArray = np.ndarray[Any, Any]


def lacks_blas(problem: GemmProblem) -> str | None:
    """Return why NumPy's BLAS cannot form a product, or None."""
    if problem.is_integer:
        return "BLAS has no integers"
    if problem.dtype.itemsize == 2:
        return "BLAS has no half precision"
    if problem.activation:
        return "BLAS has no activations"
    return None


def multiply_by_blas(
    problem: GemmProblem, inputs: Mapping[str, HostArray], target: HostArray | None = None
) -> HostArray:
    """Multiply plain host arrays: ``a``, ``b``, and ``c`` and ``bias`` if given.

    `lacks_blas` does not refuse the problem. `target` shares no memory with the inputs.
    """
    number = problem.dtype.type
    result = np.empty(problem.shape, problem.dtype) if target is None else target
    with np.errstate(all="ignore"):
        if problem.depth:
            np.matmul(*factors(problem, inputs), out=result)
            if problem.alpha != 1:
                result *= number(problem.alpha)
        else:
            result[...] = 0  # a and b are not read when k or alpha is 0
        if problem.beta:
            c = inputs["c"]
            result += c if problem.beta == 1 else number(problem.beta) * c
        if problem.bias:
            bias = inputs["bias"]
            result += bias[:, None] if problem.bias == "row" else bias
    return result
