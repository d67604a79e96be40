"""Sorting as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab import distributed
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.ops.keys import without_rows
from opencl_lab.lab.ops.sort.pyopencl_sorts import bitonic_sort, padded_length, radix_sort
from opencl_lab.lab.ops.sort.references import sorted_rows, torch_rows
from opencl_lab.lab.reference.peers import Calls, OurCall
from opencl_lab.ops.sort.functions import sort
from opencl_lab.ops.sort.problem import SortProblem

NAN = "nan"


def _ours(problem: SortProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"descending": problem.descending, "algorithm": algorithm}
    return OurCall(sort, (arrays["keys"],), options)


def _over_ranks(problem: SortProblem, arrays: Mapping[str, Any]) -> OurCall:
    if problem.rows != 1:
        raise InvalidProblem(f"over ranks one row is sorted, not {problem.rows}")
    return OurCall(
        distributed.sort, (arrays["keys"].reshape(-1),), {"descending": problem.descending}
    )


def _array_module(problem: SortProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return sorted_rows(problem, module, arrays["keys"], NAN in arrays)


def _torch(problem: SortProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return torch_rows(problem, module, arrays["keys"], NAN in arrays)


def _shaped(problem: SortProblem, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keys, and an array `NAN` where descending ones hold NaN: no call looks itself."""
    shaped, keys = without_rows(problem, arrays), arrays["keys"]
    if problem.descending and keys.dtype.kind == "f" and np.isnan(keys).any():
        return {**shaped, NAN: np.ones(1, np.uint8)}
    return shaped


def _radix_cost(problem: SortProblem) -> int:
    """Return the cost of PyOpenCL's RadixSort: two bits in each pass, at four operations a bit."""
    return 8 * problem.dtype.itemsize * 4 * problem.rows * problem.n


def _bitonic_cost(problem: SortProblem) -> int:
    """Return the number of comparisons of a sorting network."""
    bits = padded_length(problem).bit_length() - 1
    return problem.rows * padded_length(problem) * bits * (bits + 1) // 2


def _padding(problem: SortProblem) -> str:
    length = padded_length(problem)
    return "" if length == problem.n else f"padded to {length:,} keys"


CALLS = Calls(
    _ours,
    {
        "numpy": _array_module,
        "cupy": _array_module,
        "torch": _torch,
        "pyopencl:radix": radix_sort,
        "pyopencl:bitonic": bitonic_sort,
    },
    ("keys",),
    cost={"pyopencl:radix": _radix_cost, "pyopencl:bitonic": _bitonic_cost},
    notes={"pyopencl:bitonic": _padding},
    shaped=_shaped,
    over_ranks=_over_ranks,
)
