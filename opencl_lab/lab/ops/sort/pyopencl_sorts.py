"""Sorts of PyOpenCL as references, on the queue of our calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.core.kernels import WORD_TYPES
from opencl_lab.lab.ops.sort.references import in_order
from opencl_lab.lab.reference.on_queue import OnQueue


class _Sorted(NamedTuple):
    """Rows in ascending order, possibly padded."""

    keys: cl.array.Array
    problem: Any

    def get(self) -> np.ndarray[Any, Any]:
        """Return the rows without padding, in the order of the problem."""
        rows = self.keys.get().reshape(self.problem.rows, -1)[:, : self.problem.n]
        return np.asarray(in_order(self.problem, np, rows))


def _key_expression(dtype: np.dtype[Any]) -> str:
    """Return an OpenCL C expression for an unsigned code in the order of the keys, NaN last."""
    unsigned = WORD_TYPES[dtype.itemsize]
    top = f"(({unsigned})1 << {8 * dtype.itemsize - 1})"
    if dtype.kind == "u":
        return "x[i]"
    bits = f"as_{unsigned}(x[i])"
    if dtype.kind == "i":
        return f"({unsigned})({bits} ^ {top})"
    flipped = f"({bits} & {top} ? ~{bits} : {bits} | {top})"
    return f"(x[i] != x[i] ? ~({unsigned})0 : {flipped})"


@lru_cache(16)
def _radix(context: cl.Context, dtype: np.dtype[Any]) -> Any:
    """Build PyOpenCL's radix sort for keys of a type, which takes seconds on some devices."""
    from pyopencl.algorithm import RadixSort
    from pyopencl.tools import dtype_to_ctype

    return RadixSort(
        context,
        f"__global {dtype_to_ctype(dtype)} *x",
        key_expr=_key_expression(dtype),
        sort_arg_names=["x"],
        key_dtype=np.uint64 if dtype.itemsize == 8 else np.uint32,
    )


@lru_cache(4)
def _bitonic(context: cl.Context) -> Any:
    from pyopencl.bitonic_sort import BitonicSort

    make: Any = BitonicSort
    return make(context)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide warnings: PyOpenCL warns about its own kernels and calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _check(problem: Any) -> None:
    if not problem.rows * problem.n:
        raise ReferenceUnavailable("PyOpenCL does not sort empty arrays")


def radix_sort(problem: Any, there: OnQueue, arrays: Any) -> _Sorted:
    """Sort one row by `pyopencl.algorithm.RadixSort` into a new array."""
    _check(problem)
    if problem.rows != 1:
        raise ReferenceUnavailable("PyOpenCL's RadixSort sorts only a single row")
    with _without_warnings():
        (keys,), _ = _radix(there.queue.context, problem.dtype)(
            arrays["keys"].reshape(-1), queue=there.queue, key_bits=8 * problem.dtype.itemsize
        )
    return _Sorted(keys, problem)


def padded_length(problem: Any) -> int:
    """Return the power of two to which rows are padded; at least 2: `BitonicSort` hangs at 1."""
    n: int = problem.n
    return 1 << max(1, (n - 1).bit_length())


def bitonic_sort(problem: Any, there: OnQueue, arrays: Any) -> _Sorted:
    """Sort rows by `pyopencl.bitonic_sort.BitonicSort`, padded to a power of two.

    It sorts in place, so the keys are copied. Rows are padded with the largest key. NaN is refused,
    since its place in the result would be arbitrary.
    """
    _check(problem)
    if there.has_nan:
        raise ReferenceUnavailable("PyOpenCL's BitonicSort has no order for NaN")
    keys, queue, length = arrays["keys"], there.queue, padded_length(problem)
    if length == problem.n:
        copy = keys.copy(queue=queue)
    else:
        dtype = problem.dtype
        largest = np.array(np.inf if dtype.kind == "f" else np.iinfo(dtype).max, dtype)
        copy = cl.array.empty(queue, (problem.rows, length), dtype)
        source: Any = keys.data
        target: Any = copy.data
        cl.enqueue_fill_buffer(queue, target, largest, 0, copy.nbytes)
        width = problem.n * dtype.itemsize
        cl.enqueue_copy(
            queue,
            target,
            source,
            src_origin=(0, 0, 0),
            dst_origin=(0, 0, 0),
            region=(width, problem.rows, 1),
            src_pitches=(width,),
            dst_pitches=(length * dtype.itemsize,),
        )
    with _without_warnings():
        result, _ = _bitonic(queue.context)(copy, queue=queue, axis=len(copy.shape) - 1)
    return _Sorted(result, problem)
