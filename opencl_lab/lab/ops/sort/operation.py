"""Sorting as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option, axis_of, refuse_axis
from opencl_lab.lab.ops.keys import (
    ORDERS,
    SAMPLE_KEYS,
    along_axis,
    c_defines,
    exact,
    random_keys,
    rows_of,
)
from opencl_lab.lab.ops.sort.calls import CALLS
from opencl_lab.lab.ops.sort.file import sort_file
from opencl_lab.lab.ops.sort.references import (
    no_avx512_sort,
    numpy_avx2_environment,
    numpy_sort,
    torch_sort,
)
from opencl_lab.lab.reference.descriptor import Arrays, CReference, HostReference, needs
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import torch_threads
from opencl_lab.ops.sort.part_sizes import needs_parts, parts_of
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER


def _c_defines(problem: SortProblem) -> dict[str, str]:
    return c_defines(problem.dtype, problem.descending)


def _c_arguments(problem: SortProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    return (inputs["keys"], outputs["sorted"], problem.rows, problem.n)


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
        CReference("c:omp", "sort.c", "sort_merge_omp", _c_defines, _c_arguments, threaded=True),
        CReference("c:qsort", "sort.c", "sort_qsort", _c_defines, _c_arguments),
        HostReference("numpy", numpy_sort),
        HostReference("numpy:avx2", numpy_sort, no_avx512_sort, numpy_avx2_environment()),
        HostReference("torch", torch_sort, needs("torch"), threaded=True, held=torch_threads),
        from_host(CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> SortProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        refuse_axis(options)
        return SortProblem(
            chosen["n"], np.dtype(chosen["dtype"]), chosen["rows"], chosen["descending"]
        )

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[SortProblem, Arrays]:
        """Sort along an axis of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        data = rows_of(arrays, options)
        rows, n = data.shape
        return SortProblem(n, data.dtype, rows, chosen["descending"]), {"keys": data}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the sorted keys in the shape of the user's array, of random data as one row."""
        result = outputs[self.output]
        return along_axis(result, arrays, options) if arrays else result.reshape(-1)

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
        return {"keys": random_keys((problem.rows, problem.n), problem.dtype, order, rng)}

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
        return exact(expected["sorted"], actual["sorted"])


SORT = Sort()
