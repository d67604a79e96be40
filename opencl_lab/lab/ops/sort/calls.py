"""Sorting as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.ops.keys import without_rows
from opencl_lab.lab.ops.sort.references import sorted_rows, torch_rows
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.sort.functions import sort
from opencl_lab.ops.sort.problem import SortProblem

NAN = "nan"


def _ours(problem: SortProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"descending": problem.descending, "algorithm": algorithm}
    return OurCall(sort, (arrays["keys"],), options)


def _over_ranks(problem: SortProblem, arrays: Mapping[str, Any]) -> RanksCall:
    if problem.rows != 1:
        raise InvalidProblem(f"over ranks one row is sorted, not {problem.rows}")
    return RanksCall("sort", (arrays["keys"].reshape(-1),), {"descending": problem.descending})


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


CALLS = Calls(
    _ours,
    {
        "numpy": _array_module,
        "cupy": _array_module,
        "torch": _torch,
    },
    ("keys",),
    shaped=_shaped,
    over_ranks=_over_ranks,
)
