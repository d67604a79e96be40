"""Selections as users call them, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.lab.ops.keys import without_rows
from opencl_lab.lab.ops.select.references import (
    ANY_PLACES,
    search_by_arrays,
    search_by_torch,
    topk_by_arrays,
    topk_by_torch,
    unique_by_any,
)
from opencl_lab.lab.reference.peers import Calls, OurCall
from opencl_lab.ops.select.functions import searchsorted, topk
from opencl_lab.ops.select.problem import SearchProblem, TopkProblem, UniqueProblem
from opencl_lab.ops.select.unique import unique


def _topk(problem: TopkProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"k": problem.k, "largest": problem.largest, "algorithm": algorithm}
    return OurCall(topk, (arrays["keys"],), options)


def _unique(problem: UniqueProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"return_counts": problem.counts, "algorithm": algorithm}
    return OurCall(unique, (arrays["keys"],), options)


def _search(problem: SearchProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {"side": "right" if problem.right else "left", "algorithm": algorithm}
    return OurCall(searchsorted, (arrays["keys"], arrays["values"]), options)


TOPK_CALLS = Calls(
    _topk,
    {"numpy": topk_by_arrays, "cupy": topk_by_arrays, "torch": topk_by_torch},
    ("keys",),
    shaped=without_rows,
    returned=("values", "places"),
    peers_returned=("values", ANY_PLACES),
)
UNIQUE_CALLS = Calls(
    _unique,
    dict.fromkeys(("numpy", "cupy", "torch"), unique_by_any),
    ("keys",),
    returned=("values", "counts"),
)
SEARCH_CALLS = Calls(
    _search,
    {"numpy": search_by_arrays, "cupy": search_by_arrays, "torch": search_by_torch},
    ("keys", "values"),
)
