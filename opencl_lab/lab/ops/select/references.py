"""Selections by other libraries: calls on their arrays, and references on the host."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays

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


# --- references, with host data -------------------------------------------------------------------


def numpy_topk(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.argpartition`, and sort the k values."""
    return _topk_outputs(topk_by_arrays(problem, np, inputs))


def numpy_topk_by_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.argsort`, and take k indices."""
    order = np.argsort(inputs["keys"], axis=-1)
    if problem.largest:
        order = order[..., ::-1]
    places = np.ascontiguousarray(order[..., : problem.k])
    return _topk_outputs((np.take_along_axis(inputs["keys"], places, axis=-1), places))


def numpy_unique(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.unique`."""
    return _unique_outputs(unique_by_any(problem, np, inputs))


def numpy_search(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.searchsorted`."""
    return {"places": search_by_arrays(problem, np, inputs)}


def torch_topk(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.topk` on the processor."""
    return _topk_outputs(_by_torch(topk_by_torch, problem, inputs))


def torch_unique(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.unique` on the processor."""
    _need_numbers(inputs, "counts each NaN as a different key")
    return _unique_outputs(_by_torch(unique_by_any, problem, inputs))


def torch_search(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.searchsorted` on the processor."""
    _need_numbers(inputs, "does not look for NaN")
    return {"places": _by_torch(search_by_torch, problem, inputs)}


def _topk_outputs(result: Any) -> Arrays:
    values, places = result
    return {"values": values, ANY_PLACES: places}


def _unique_outputs(result: Any) -> Arrays:
    arrays = result if isinstance(result, tuple) else (result,)
    return dict(zip(("values", "counts"), arrays, strict=False))


def _by_torch(call: Callable[..., Any], problem: Any, inputs: Arrays) -> Any:
    """Make a call of PyTorch on the processor; refuse types that it does not support."""
    torch = importlib.import_module("torch")
    try:
        result = call(problem, torch, {n: torch.from_numpy(a) for n, a in inputs.items()})
    except (RuntimeError, TypeError) as error:
        reason = f"PyTorch does not support {problem.dtype} here: {str(error).splitlines()[0]}"
        raise ReferenceUnavailable(reason) from error
    if isinstance(result, tuple):
        return tuple(array.numpy() for array in result)
    return result.numpy()


def _need_numbers(inputs: Arrays, why: str) -> None:
    if any(array.dtype.kind == "f" and np.isnan(array).any() for array in inputs.values()):
        raise ReferenceUnavailable(f"PyTorch {why}")
