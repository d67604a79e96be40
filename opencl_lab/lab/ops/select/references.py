"""Selections by other libraries, references on the host, and calls as users make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.lab.ops.keys import without_rows
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Call, Calls, OurCall, named
from opencl_lab.ops.select.functions import searchsorted, topk
from opencl_lab.ops.select.problem import SearchProblem, TopkProblem, UniqueProblem
from opencl_lab.ops.select.unique import unique

ANY_PLACES = "any_places"
"""Name of an output with indices of the values, in which equal keys may be exchanged."""

Of: TypeAlias = Mapping[str, Any]

# --- calls on arrays of a library -----------------------------------------------------------------


def topk_by_arrays(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values and indices by `argpartition`, and a sort of the k values."""
    keys, n, k = arrays["keys"], problem.n, problem.k
    pivot, chosen = (n - k, slice(n - k, n)) if problem.largest else (k - 1, slice(0, k))
    places = (
        module.argpartition(keys, min(max(pivot, 0), n - 1), axis=-1)[..., chosen] if n else keys
    )
    return _in_order(problem, module, keys, places.astype(np.int64, copy=False))


def _in_order(problem: Any, module: Any, keys: Any, places: Any) -> Any:
    """Return the chosen keys and their indices in the order of the result."""
    values = module.take_along_axis(keys, places, axis=-1)
    order = module.argsort(values, axis=-1)
    if problem.largest:
        order = order[..., ::-1]
    return (
        module.take_along_axis(values, order, axis=-1),
        module.take_along_axis(places, order, axis=-1),
    )


def topk_by_torch(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values and indices by `torch.topk`."""
    return module.topk(arrays["keys"], problem.k, largest=problem.largest)


def unique_by_any(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values, and counts if requested, by `unique` of NumPy, CuPy or PyTorch."""
    return module.unique(arrays["keys"], return_counts=problem.counts)


def search_by_arrays(problem: Any, module: Any, arrays: Of) -> Any:
    """Return indices by `searchsorted` of NumPy or CuPy."""
    side = "right" if problem.right else "left"
    return module.searchsorted(arrays["keys"], arrays["values"], side)


def search_by_torch(problem: Any, module: Any, arrays: Of) -> Any:
    """Return indices by `torch.searchsorted`."""
    return module.searchsorted(arrays["keys"], arrays["values"], right=problem.right)


def topk_by_sort(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values and indices by `argsort` of all keys."""
    order = module.argsort(arrays["keys"], axis=-1)
    if problem.largest:
        order = order[..., ::-1]
    places = module.ascontiguousarray(order[..., : problem.k])
    return module.take_along_axis(arrays["keys"], places, axis=-1), places


# --- references, with host data -------------------------------------------------------------------


def by_numpy(call: Call, *names: str) -> Callable[[Any, Arrays, int], Arrays]:
    """Return the reference that makes a call of NumPy, with the names of its results."""
    return lambda problem, inputs, threads: named(names, call(problem, np, inputs))


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
