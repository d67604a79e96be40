"""Sorting as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.files import convert
from opencl_lab.kernels import host_c_type
from opencl_lab.operation import UNLIKE, Difference, Operation, Option
from opencl_lab.operations.sort.calls import CALLS
from opencl_lab.operations.sort.file import sort_file
from opencl_lab.operations.sort.part_sizes import needs_parts, parts_of
from opencl_lab.operations.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.operations.sort.references import (
    no_avx512_sort,
    numpy_avx2_environment,
    numpy_sort,
    torch_sort,
)
from opencl_lab.operations.sort.solver import SORT_SOLVER
from opencl_lab.reference.descriptor import Arrays, CReference, HostReference, needs
from opencl_lab.reference.peers import from_host
from opencl_lab.reference.threads import torch_threads
from opencl_lab.runtime.arrays import native
from opencl_lab.runtime.rows import Rows
from opencl_lab.solver import axis_of

__all__ = ["ORDERS", "SORT", "Sort"]

ORDERS = (
    "random",
    "sorted",
    "reversed",
    "nearly-sorted",
    "few-unique",
    "equal",
    "organ-pipe",
    "zipf",
)
ZIPF = 1.3
"""Exponent of skewed keys: the most frequent one is a quarter of them."""
SAMPLE_KEYS = 1 << 18


def _c_defines(problem: SortProblem) -> dict[str, str]:
    return {
        "KEY_T": host_c_type(problem.dtype),
        "KEY_IS_FLOAT": str(int(problem.dtype.kind == "f")),
        "DESCENDING": str(int(problem.descending)),
    }


def _c_arguments(
    problem: SortProblem, inputs: Arrays, outputs: Arrays, threads: int
) -> tuple[Any, ...]:
    return (inputs["keys"], outputs["sorted"], problem.rows, problem.n)


def _c_threaded(
    problem: SortProblem, inputs: Arrays, outputs: Arrays, threads: int
) -> tuple[Any, ...]:
    return (*_c_arguments(problem, inputs, outputs, threads), threads)


class Sort(Operation[SortProblem]):
    """Stable sorting in the order of `numpy.sort`."""

    solver = SORT_SOLVER
    calls = CALLS
    find_file_job = staticmethod(sort_file)
    summary = "Sort numbers, stably and in NumPy's order."
    options = (
        Option("n", int, 50_000, "how many keys"),
        Option("rows", int, 1, "how many rows of n keys, each sorted by itself"),
        Option("dtype", str, "int32", "type of the keys", KEY_TYPES),
        Option("order", str, "random", "how generated keys are arranged", ORDERS, about_data=True),
        Option("descending", bool, False, "the largest key first"),
        Option("axis", int, None, "axis of an input file to sort along; default: the last, -1"),
    )
    size_option = "n"
    check_cases = tuple(
        MappingProxyType({"n": 20_011, "rows": 3, "descending": descending})
        for descending in (False, True)
    )
    inputs = ("keys",)
    output = "sorted"
    references = (
        CReference("c:seq", "sort.c", "sort_merge_seq", _c_defines, _c_arguments),
        CReference("c:omp", "sort.c", "sort_merge_omp", _c_defines, _c_threaded, threaded=True),
        CReference("c:qsort", "sort.c", "sort_qsort", _c_defines, _c_arguments),
        HostReference("numpy", numpy_sort),
        HostReference("numpy:avx2", numpy_sort, no_avx512_sort, numpy_avx2_environment()),
        HostReference("torch", torch_sort, needs("torch"), threaded=True, held=torch_threads),
        from_host(CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> SortProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        axis_of(options, 1)
        return SortProblem(
            chosen["n"], np.dtype(chosen["dtype"]), chosen["rows"], chosen["descending"]
        )

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[SortProblem, Arrays]:
        """Sort along an axis of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        for name in ("n", "rows"):
            if name in options:
                raise InvalidProblem(f"{name} is given by the input file; leave it out")
        keys = native(arrays["keys"])
        if not keys.ndim:
            raise InvalidProblem("the file holds a single number without dimensions, not an array")
        if "dtype" in options:
            keys = convert(keys, options["dtype"])
        data = Rows.of(keys, axis_of(options, keys.ndim)).data
        rows, n = data.shape
        return SortProblem(n, data.dtype, rows, chosen["descending"]), {"keys": data}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the sorted keys in the shape of the user's array, of random data as one row."""
        result = outputs[self.output]
        if not arrays:
            return result.reshape(-1)
        shape = list(arrays["keys"].shape)
        axis = axis_of(options, len(shape))
        length = shape.pop(axis)
        return np.moveaxis(result.reshape(*shape, length), -1, axis)

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return what is sorted of a table."""
        if not arrays or arrays["keys"].ndim != 2:
            return ""
        if axis_of(options, 2) == 0:
            return "sorting each column"
        return "sorting each row (--axis 0 sorts the columns)"

    def keeps_columns(self, arrays: Arrays, **options: Any) -> bool:
        """Return whether keys stay in their columns, which hold other things each."""
        return axis_of(options, arrays["keys"].ndim) == 0

    def generate(self, problem: SortProblem, seed: int, **options: Any) -> Arrays:
        """Return keys over the whole range of the type, or normal floats, arranged as asked."""
        order = self.with_defaults(options)["order"]
        rng = np.random.default_rng(seed)
        shape = (problem.rows, problem.n)
        if problem.dtype.kind == "f":
            drawn = np.float64 if problem.dtype == np.float64 else np.float32
            keys = rng.standard_normal(shape, drawn).astype(problem.dtype, copy=False)
        elif problem.dtype == np.bool_:
            keys = rng.integers(0, 2, shape, np.bool_)
        else:
            limits = np.iinfo(problem.dtype)
            keys = rng.integers(limits.min, limits.max, shape, problem.dtype, endpoint=True)
        return {"keys": _arrange(keys, order, rng)}

    def in_parts(
        self, problem: SortProblem, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return how many parts the public function makes of keys that the device cannot hold."""
        if not needs_parts(problem, device, algorithm, config):
            return ""
        return f"in {parts_of(problem, device, algorithm, config)}"

    def sample(self, problem: SortProblem) -> SortProblem:
        """Return no more keys than tell how fast a peer is, and not how long it takes to launch."""
        n = min(problem.n, SAMPLE_KEYS)
        return replace(problem, n=n, rows=min(problem.rows, max(1, SAMPLE_KEYS // max(n, 1))))

    def expected(self, problem: SortProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy's stable sort gives."""
        keys = np.sort(inputs["keys"], axis=-1, kind="stable")
        return {"sorted": keys[:, ::-1] if problem.descending else keys}

    def compare(
        self, problem: SortProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Sorting moves keys and must not change them: the tolerance is zero."""
        right, given = expected["sorted"], actual["sorted"]
        if given.shape != right.shape or given.dtype != right.dtype:
            return UNLIKE
        if np.array_equal(right, given, equal_nan=right.dtype.kind == "f"):
            return Difference.exact(0.0, 0.0, True)
        with np.errstate(invalid="ignore"):
            reference = right.astype(np.float64)
            difference = np.abs(reference - given.astype(np.float64))
            difference[(right == given) | ((right != right) & (given != given))] = 0
            relative = difference / (np.abs(reference) + 1e-12)
        return Difference.exact(float(np.max(difference)), float(np.max(relative)), False)


def _arrange(
    keys: np.ndarray[Any, Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Rearrange random keys within each row."""
    if order == "random" or not keys.size:
        return keys
    if order == "equal":
        return np.repeat(keys[:, :1], keys.shape[1], axis=1)
    if order == "few-unique":
        few = keys[:, : min(16, keys.shape[1])]
        return np.take_along_axis(few, rng.integers(0, few.shape[1], keys.shape), axis=1)
    if order == "zipf":
        ranks = (rng.zipf(ZIPF, keys.shape) - 1) % keys.shape[1]
        return np.take_along_axis(keys, ranks, axis=1)
    keys = np.sort(keys, axis=-1)
    if order == "reversed":
        keys = keys[:, ::-1]
    elif order == "organ-pipe":
        keys = np.concatenate([keys[:, ::2], keys[:, 1::2][:, ::-1]], axis=1)
    elif order == "nearly-sorted":
        for _ in range(max(1, keys.shape[1] // 100)):
            i, j = rng.integers(0, keys.shape[1], 2)
            keys[:, [i, j]] = keys[:, [j, i]]
    return np.ascontiguousarray(keys)


SORT = Sort()
