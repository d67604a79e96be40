"""Selections by other libraries: calls on their arrays, and references on the host."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Call, named

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


def by_torch(call: Call, *names: str, no_nan: str = "") -> Callable[[Any, Arrays, int], Arrays]:
    """Return the reference that makes a call of PyTorch on the processor.

    Types that it does not support are refused, and so are NaN if `no_nan` says what it does then.
    """

    def run(problem: Any, inputs: Arrays, threads: int) -> Arrays:
        if no_nan and any(x.dtype.kind == "f" and np.isnan(x).any() for x in inputs.values()):
            raise ReferenceUnavailable(f"PyTorch {no_nan}")
        torch = importlib.import_module("torch")
        try:
            result = call(problem, torch, {n: torch.from_numpy(a) for n, a in inputs.items()})
        except (RuntimeError, TypeError) as error:
            reason = f"PyTorch does not support {problem.dtype} here: {str(error).splitlines()[0]}"
            raise ReferenceUnavailable(reason) from error
        return {name: array.numpy() for name, array in named(names, result).items()}

    return run
