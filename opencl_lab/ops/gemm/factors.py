"""The factors of a matrix product as arrays of NumPy, CuPy or torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
