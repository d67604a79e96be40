"""Matrix products by the BLAS that NumPy was built with, as `opencl_lab.gemm` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.ops.gemm.problem import GemmProblem


def factors(problem: GemmProblem, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return op(a) and op(b), with stacks that broadcast; they are views unless conjugated.

    `arrays` holds ``a`` and ``b``, of NumPy, CuPy or torch.
    """
    found = []
    for moves, name in ((1, "a"), (2, "b")):
        matrix = arrays[name]
        if getattr(problem, f"trans_{name}"):
            matrix = matrix.swapaxes(-1, -2)
        if getattr(problem, f"conj_{name}"):
            matrix = matrix.conj()
        if not all(stack[moves] for stack in problem.dimensions):
            along = (slice(None) if stack[moves] else None for stack in problem.dimensions)
            matrix = matrix[tuple(along)]
        found.append(matrix)
    return found[0], found[1]


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
    problem: GemmProblem, inputs: Mapping[str, Any], target: Any = None, *, module: Any = np
) -> Any:
    """Multiply plain arrays of NumPy, or of CuPy: ``a``, ``b``, and ``c`` and ``bias`` if given.

    There is no activation. `target` shares no memory with the inputs.
    """
    number = problem.dtype.type
    result = module.empty(problem.shape, problem.dtype) if target is None else target
    with np.errstate(all="ignore"):
        if problem.depth:
            module.matmul(*factors(problem, inputs), out=result)
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
