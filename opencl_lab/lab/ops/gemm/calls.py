"""The matrix product as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.ops.gemm.references import array_product, check_plain, torch_product
from opencl_lab.lab.reference.clblast import OnClblast
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.gemm.bind import shaped
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.runtime.call import Call

OPTIONS = ("alpha", "beta", "precision")
CLBLAST_OPTIONS = ("alpha", "beta", "trans_a", "trans_b", "conj_a", "conj_b")


def _word(problem: GemmProblem, name: str) -> bool | str | None:
    """Return the value of ``trans_a`` or ``trans_b`` for a factor; None if there is none."""
    transposed = getattr(problem, f"trans_{name}")
    if getattr(problem, f"conj_{name}"):
        return "C" if transposed else None
    return bool(transposed)


def _ours(problem: GemmProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall | None:
    words = {f"trans_{name}": _word(problem, name) for name in ("a", "b")}
    if None in words.values():
        return None
    found = []
    for place, name in ((1, "a"), (2, "b")):
        ahead = (stack[0] if stack[place] else 1 for stack in problem.dimensions)
        found.append(shaped(arrays[name], (*ahead, *arrays[name].shape[-2:]), Call()))
    options = {"c": arrays.get("c"), **{name: getattr(problem, name) for name in OPTIONS}, **words}
    if problem.bias:
        options["bias"] = arrays["bias"].reshape((-1, 1) if problem.bias == "row" else (-1,))
    options["activation"] = problem.activation or None
    options["algorithm"] = algorithm
    return OurCall(gemm, tuple(found), options)


def _over_ranks(problem: GemmProblem, arrays: Mapping[str, Any]) -> RanksCall:
    call = _ours(problem, arrays, "auto")
    if call is None or problem.batch != 1 or problem.bias or problem.activation:
        raise InvalidProblem("over ranks one product, without bias and activation, is made")
    names = (*OPTIONS, "c", "trans_a", "trans_b")
    return RanksCall("gemm", call.arrays, {name: call.options[name] for name in names})


def _clblast(problem: GemmProblem, there: OnClblast, arrays: Mapping[str, Any]) -> Any:
    """Return a new result; CLBlast overwrites C, so C is copied if it is read."""
    check_plain(problem, "CLBlast", stacks=True, numbers="fc")
    if not (problem.batch and problem.m and problem.n and problem.k):
        raise ReferenceUnavailable("CLBlast does not multiply empty matrices")
    result = there.new(problem.shape, problem.dtype)
    if problem.beta:
        there.copy(arrays["c"], result)
    there.gemm(
        arrays["a"],
        arrays["b"],
        result,
        **{name: getattr(problem, name) for name in CLBLAST_OPTIONS},
    )
    return result


CALLS = Calls(
    _ours,
    {"numpy": array_product, "torch": torch_product, "cupy": array_product, "clblast": _clblast},
    ("a", "b", "c", "bias"),
    over_ranks=_over_ranks,
)
