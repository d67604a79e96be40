"""Sorting as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Option
from opencl_lab.lab.ops.keys import (
    DTYPE,
    ORDER,
    RowsOperation,
    along_axis,
    c_defines,
    exact,
    sample_shape,
)
from opencl_lab.lab.ops.shared import in_c, in_torch
from opencl_lab.lab.ops.sort.calls import CALLS
from opencl_lab.lab.ops.sort.file import sort_file
from opencl_lab.lab.ops.sort.references import (
    no_avx512_sort,
    numpy_avx2_environment,
    numpy_sort,
    sorted_rows,
    torch_rows,
)
from opencl_lab.lab.reference.descriptor import Arrays, HostReference
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.ops.sort.part_sizes import needs_parts, parts_of
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.ops.sort.trials import ODD_SIZES

C_SEQ, C_OMP = in_c(
    "sort.c",
    "sort_merge",
    lambda problem: c_defines(problem.dtype, problem.descending),
    lambda problem, inputs, outputs: (inputs["keys"], outputs["sorted"], problem.rows, problem.n),
)


class Sort(RowsOperation[SortProblem]):
    """Stable sorting in the order of `numpy.sort`."""

    solver = SORT_SOLVER
    calls = CALLS
    find_file_job = staticmethod(sort_file)
    summary = "Sort numbers, stably and in NumPy's order."
    options = (
        Option("n", int, 50_000, "number of keys"),
        Option("rows", int, 1, "number of rows of n keys, each sorted separately"),
        DTYPE,
        ORDER,
        Option("descending", bool, False, "sort the largest key first, NaN last"),
        Option(
            "axis", int, None, "axis of an input file to sort along", default_text="the last, -1"
        ),
    )
    doing = "sorting", " sorts the columns"
    check_cases = tuple(
        MappingProxyType({**ODD_SIZES, "descending": descending}) for descending in (False, True)
    )
    output = "sorted"
    references = (
        C_SEQ,
        C_OMP,
        replace(C_SEQ, name="c:qsort", function="sort_qsort"),
        HostReference("numpy", numpy_sort),
        HostReference("numpy:avx2", numpy_sort, no_avx512_sort, numpy_avx2_environment()),
        in_torch(
            lambda problem, torch, arrays: torch_rows(problem, torch, arrays["keys"]), "sorted"
        ),
        from_host(CALLS, "cupy"),
    )

    def described(
        self, chosen: Mapping[str, Any], n: int, dtype: np.dtype[Any], rows: int
    ) -> SortProblem:
        """Return the problem of `rows` rows of n keys."""
        return SortProblem(n, dtype, rows, chosen["descending"])

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the sorted keys in the shape of the user's array; random data as one row."""
        result = outputs[self.output]
        return along_axis(result, arrays, options) if arrays else result.reshape(-1)

    def in_parts(
        self, problem: SortProblem, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return in how many parts the public function sorts; empty if the keys fit the device."""
        if not needs_parts(problem, device, algorithm, config):
            return ""
        return f"in {parts_of(problem, device, algorithm, config)}"

    def sample(self, problem: SortProblem) -> SortProblem:
        """Return a smaller problem from which the speed of a peer can be estimated."""
        rows, n = sample_shape(problem)
        return replace(problem, n=n, rows=rows)

    def generate(self, problem: SortProblem, seed: int, **options: Any) -> Arrays:
        """Return keys, and random bytes as their values where the problem has values."""
        arrays, nbytes = super().generate(problem, seed, **options), problem.value_bytes
        if nbytes:
            drawn = np.random.default_rng(seed).bytes(problem.rows * problem.n * nbytes)
            arrays["values"] = np.frombuffer(drawn, f"V{nbytes}").reshape(arrays["keys"].shape)
        return arrays

    def expected(self, problem: SortProblem, inputs: Arrays) -> Arrays:
        """Return the result of NumPy's stable sort."""
        if problem.indices or problem.value_bytes:
            return self._with_values(problem, **inputs)
        return {"sorted": sorted_rows(problem, np, inputs["keys"], kind="stable")}

    def compare(
        self, problem: SortProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare exactly, since sorting must not change keys."""
        found = [exact(right, actual[name]) for name, right in expected.items()]
        return next((difference for difference in found if not difference.ok), found[0])

    def _with_values(
        self,
        problem: SortProblem,
        keys: np.ndarray[Any, Any],
        values: np.ndarray[Any, Any] | None = None,
    ) -> Arrays:
        """Return what a sort with values or of indices gives; equal keys keep their order."""
        step = -1 if problem.descending else 1
        order = np.argsort(keys[:, ::step], axis=-1, kind="stable")[:, ::step]
        if problem.descending:
            order = problem.n - 1 - order
            missing = np.isnan(np.take_along_axis(keys, order, -1))  # last in both orders
            order = np.take_along_axis(order, np.argsort(missing, axis=-1, kind="stable"), -1)
        if values is None:
            return {"sorted_values": order}
        moved = {"sorted": keys, "sorted_values": values}
        return {name: np.take_along_axis(array, order, -1) for name, array in moved.items()}


SORT = Sort()
