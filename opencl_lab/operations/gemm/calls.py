"""The matrix product as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.operations.gemm.functions import gemm
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.reference.peers import Calls, OurCall

__all__ = ["CALLS"]


OPTIONS = ("alpha", "beta", "trans_a", "trans_b", "precision")


def _ours(problem: GemmProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"c": arrays.get("c"), **{name: getattr(problem, name) for name in OPTIONS}}
    options["algorithm"] = algorithm
    return OurCall(gemm, (arrays["a"], arrays["b"]), options)


def _product(problem: GemmProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    a = arrays["a"].T if problem.trans_a else arrays["a"]
    b = arrays["b"].T if problem.trans_b else arrays["b"]
    result = a @ b
    if problem.alpha != 1:
        result *= problem.alpha
    if problem.beta:
        result += problem.beta * arrays["c"]
    return result


CALLS = Calls(_ours, dict.fromkeys(("numpy", "torch", "cupy"), _product), ("a", "b", "c"))
