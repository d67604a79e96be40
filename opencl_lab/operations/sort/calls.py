"""Sorting as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.operations.sort.functions import sort
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.reference.peers import Calls, OurCall

__all__ = ["CALLS"]


def _ours(problem: SortProblem, arrays: Mapping[str, Any]) -> OurCall:
    return OurCall(sort, (arrays["keys"],), {"descending": problem.descending})


def _array_module(problem: SortProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    keys = module.sort(arrays["keys"], axis=-1)
    return keys[..., ::-1] if problem.descending else keys


def _torch(problem: SortProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return module.sort(arrays["keys"], descending=problem.descending).values


CALLS = Calls(_ours, {"numpy": _array_module, "cupy": _array_module, "torch": _torch}, ("keys",))
