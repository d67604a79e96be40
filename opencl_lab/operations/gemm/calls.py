"""The matrix product as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.errors import ReferenceUnavailable
from opencl_lab.operations.gemm.functions import gemm
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.operations.gemm.references import factors, torch_product
from opencl_lab.reference.clblast import OnClblast
from opencl_lab.reference.peers import Calls, OurCall

__all__ = ["CALLS"]


OPTIONS = ("alpha", "beta", "trans_a", "trans_b", "precision")


def _ours(problem: GemmProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"c": arrays.get("c"), **{name: getattr(problem, name) for name in OPTIONS}}
    options["algorithm"] = algorithm
    return OurCall(gemm, (arrays["a"], arrays["b"]), options)


def _product(problem: GemmProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    a, b = factors(problem, arrays)
    result = a @ b
    if problem.alpha != 1:
        result *= problem.alpha
    if problem.beta:
        result += problem.beta * arrays["c"]
    return result


def _clblast(problem: GemmProblem, there: OnClblast, arrays: Mapping[str, Any]) -> Any:
    """Return a new result; CLBlast itself overwrites its C, so where that is read it is copied."""
    if not (problem.m and problem.n and problem.k):
        raise ReferenceUnavailable("CLBlast multiplies no empty matrices")
    result = there.new((problem.m, problem.n), problem.dtype)
    if problem.beta:
        there.copy(arrays["c"], result)
    there.gemm(
        arrays["a"],
        arrays["b"],
        result,
        alpha=problem.alpha.real,
        beta=problem.beta.real,
        trans_a=problem.trans_a,
        trans_b=problem.trans_b,
    )
    return result


CALLS = Calls(
    _ours,
    {"numpy": _product, "torch": torch_product, "cupy": _product, "clblast": _clblast},
    ("a", "b", "c"),
)
