"""Selections by other libraries, as references, and as calls on arrays of theirs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays

ANY_PLACES = "any_places"
"""Places that are those of the values, while of equal keys any may have been taken."""

Of: TypeAlias = Mapping[str, Any]

# --- calls, on arrays of a library ----------------------------------------------------------------


def topk_by_arrays(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values and places by partitioning places, and sorting the k of them."""
    keys, n, k = arrays["keys"], problem.n, problem.k
    at, part = (n - k, slice(n - k, n)) if problem.largest else (k - 1, slice(0, k))
    places = module.argpartition(keys, min(max(at, 0), n - 1), axis=-1)[..., part] if n else keys
    return _in_order(problem, module, keys, places.astype(np.int64, copy=False))


def _in_order(problem: Any, module: Any, keys: Any, places: Any) -> Any:
    """Return chosen keys and their places, the first first."""
    values = module.take_along_axis(keys, places, axis=-1)
    order = module.argsort(values, axis=-1)
    if problem.largest:
        order = order[..., ::-1]
    return (
        module.take_along_axis(values, order, axis=-1),
        module.take_along_axis(places, order, axis=-1),
    )


def topk_by_torch(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values and places by `torch.topk`."""
    return module.topk(arrays["keys"], problem.k, largest=problem.largest)


def unique_by_arrays(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values, and counts if these are wanted, by `unique` of NumPy or CuPy."""
    return module.unique(arrays["keys"], return_counts=problem.counts)


def unique_by_torch(problem: Any, module: Any, arrays: Of) -> Any:
    """Return values, and counts if these are wanted, by `torch.unique`."""
    return module.unique(arrays["keys"], return_counts=problem.counts)


def search_by_arrays(problem: Any, module: Any, arrays: Of) -> Any:
    """Return places by `searchsorted` of NumPy or CuPy."""
    side = "right" if problem.right else "left"
    return module.searchsorted(arrays["keys"], arrays["values"], side)


def search_by_torch(problem: Any, module: Any, arrays: Of) -> Any:
    """Return places by `torch.searchsorted`."""
    return module.searchsorted(arrays["keys"], arrays["values"], right=problem.right)


# --- references, from host to host ----------------------------------------------------------------


def numpy_topk(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Partition places, and sort the k of them."""
    return _topk_outputs(topk_by_arrays(problem, np, inputs))


def numpy_topk_by_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort all places, and take k of them."""
    order = np.argsort(inputs["keys"], axis=-1)
    if problem.largest:
        order = order[..., ::-1]
    places = np.ascontiguousarray(order[..., : problem.k])
    return _topk_outputs((np.take_along_axis(inputs["keys"], places, axis=-1), places))


def numpy_unique(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.unique`."""
    return _unique_outputs(unique_by_arrays(problem, np, inputs))


def numpy_search(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `numpy.searchsorted`."""
    return {"places": search_by_arrays(problem, np, inputs)}


def torch_topk(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.topk` on the processor."""
    return _topk_outputs(_by_torch(topk_by_torch, problem, inputs))


def torch_unique(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.unique` on the processor.

    Raises
    ------
    ReferenceUnavailable
        If there is a NaN, of which it takes each as another key; and as for all by PyTorch.
    """
    _need_numbers(inputs, "takes each NaN as another key")
    return _unique_outputs(_by_torch(unique_by_torch, problem, inputs))


def torch_search(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Call `torch.searchsorted` on the processor.

    Raises
    ------
    ReferenceUnavailable
        If there is a NaN, which it does not find; and as for all by PyTorch.
    """
    _need_numbers(inputs, "does not look for NaN")
    return {"places": _by_torch(search_by_torch, problem, inputs)}


def _topk_outputs(result: Any) -> Arrays:
    values, places = result
    return {"values": values, ANY_PLACES: places}


def _unique_outputs(result: Any) -> Arrays:
    parts = result if isinstance(result, tuple) else (result,)
    return dict(zip(("values", "counts"), parts, strict=False))


def _by_torch(call: Callable[..., Any], problem: Any, inputs: Arrays) -> Any:
    """Make a call of PyTorch on the processor.

    Raises
    ------
    ReferenceUnavailable
        For types that it does not take.
    """
    torch = importlib.import_module("torch")
    with _explained(problem):
        result = call(problem, torch, {n: torch.from_numpy(a) for n, a in inputs.items()})
    if isinstance(result, tuple):
        return tuple(part.numpy() for part in result)
    return result.numpy()


@contextmanager
def _explained(problem: Any) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, TypeError) as error:
        reason = f"PyTorch does not do it for {problem.dtype}: {str(error).splitlines()[0]}"
        raise ReferenceUnavailable(reason) from error


def _need_numbers(inputs: Arrays, why: str) -> None:
    if any(array.dtype.kind == "f" and np.isnan(array).any() for array in inputs.values()):
        raise ReferenceUnavailable(f"PyTorch {why}")
