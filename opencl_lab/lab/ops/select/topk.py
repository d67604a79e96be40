"""The first k keys as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import UNLIKE, Difference
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
from opencl_lab.lab.ops.select.calls import TOPK_CALLS
from opencl_lab.lab.ops.select.references import (
    ANY_PLACES,
    numpy_topk,
    numpy_topk_by_sort,
    torch_topk,
)
from opencl_lab.lab.reference.descriptor import Arrays, CReference, HostReference, needs
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import torch_threads
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.solver import TOPK_SOLVER
from opencl_lab.ops.sort.problem import KEY_TYPES

USUAL = 100


def _c_defines(problem: TopkProblem) -> dict[str, str]:
    return c_defines(problem.dtype, problem.largest)


def _c_arguments(problem: TopkProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    results = outputs["values"], outputs["places"]
    return (inputs["keys"], *results, problem.rows, problem.n, problem.k)


class Topk(Operation[TopkProblem]):
    """The largest or smallest keys of rows, in order, and where they are."""

    solver = TOPK_SOLVER
    calls = TOPK_CALLS
    summary = "Find the largest or smallest numbers, in order, and where they are."
    options = (
        Option("n", int, 1_000_000, "how many keys"),
        Option("k", int, None, f"how many of them are wanted; default: {USUAL}, or all of fewer"),
        Option("rows", int, 1, "how many rows of n keys, each looked through by itself"),
        Option("dtype", str, "int32", "type of the keys", KEY_TYPES),
        Option("order", str, "random", "how generated keys are arranged", ORDERS, about_data=True),
        Option("smallest", bool, False, "the smallest keys, the smallest first"),
        Option("axis", int, None, "axis of an input file to look along; default: the last, -1"),
    )
    size_option = "n"
    check_cases = (
        MappingProxyType({"n": 20_011, "k": 101, "rows": 3, "largest": False}),
        MappingProxyType({"n": 150_001, "k": 1_003, "rows": 1, "largest": True}),
    )
    inputs = ("keys",)
    output = "values"
    references = (
        CReference("c:seq", "topk.c", "topk_heap_seq", _c_defines, _c_arguments),
        CReference("c:omp", "topk.c", "topk_heap_omp", _c_defines, _c_arguments, threaded=True),
        HostReference("numpy", numpy_topk),
        HostReference("numpy:sort", numpy_topk_by_sort),
        HostReference("torch", torch_topk, needs("torch"), threaded=True, held=torch_threads),
        from_host(TOPK_CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> TopkProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        refuse_axis(options)
        return self._problem(chosen, chosen["n"], np.dtype(chosen["dtype"]), chosen["rows"])

    @staticmethod
    def _problem(chosen: Mapping[str, Any], n: int, dtype: np.dtype[Any], rows: int) -> TopkProblem:
        k = min(USUAL, n) if chosen["k"] is None else chosen["k"]
        return TopkProblem(n, k, dtype, rows, not chosen["smallest"])

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[TopkProblem, Arrays]:
        """Look along an axis of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        data = rows_of(arrays, options)
        rows, n = data.shape
        return self._problem(chosen, n, data.dtype, rows), {"keys": data}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the values in the shape of the user's array, of a random row as one dimension."""
        return self._shaped(arrays, outputs[self.output], options)

    def beside(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Arrays:
        """Return the places of the values."""
        return {"places": self._shaped(arrays, outputs["places"], options)}

    @staticmethod
    def _shaped(
        arrays: Arrays, rows: np.ndarray[Any, Any], options: Mapping[str, Any]
    ) -> np.ndarray[Any, Any]:
        if not arrays:
            return rows[0] if len(rows) == 1 else rows
        return along_axis(rows, arrays, options)

    def columns(
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return each column of values beside that of their places; a single row as a column."""
        rows = outputs["values"], outputs["places"]
        if len(rows[0]) == 1:
            tables = [row.T for row in rows]
        else:
            tables = [self._shaped(arrays, row, options) for row in rows]
        if tables[0].ndim > 2:
            return None
        count = tables[0].shape[1]
        heads = [head for name in names for head in (name, f"{name}_place")]
        if not heads or len(set(heads)) < len(heads):
            numbers = [""] if count == 1 else [f"_{index}" for index in range(count)]
            heads = [head + number for number in numbers for head in ("value", "place")]
        found = (table[:, index] for index in range(count) for table in tables)
        return dict(zip(heads, found, strict=True))

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return what is looked for in a table."""
        if not arrays or arrays["keys"].ndim != 2:
            return ""
        if axis_of(options, 2) == 0:
            return "looking through each column"
        return "looking through each row (--axis 0: each column)"

    def keeps_columns(self, arrays: Arrays, **options: Any) -> bool:
        """Return whether keys stay in their columns, which hold other things each."""
        return axis_of(options, arrays["keys"].ndim) == 0

    def generate(self, problem: TopkProblem, seed: int, **options: Any) -> Arrays:
        """Return keys over the whole range of the type, or normal floats, arranged as asked."""
        order = self.with_defaults(options)["order"]
        rng = np.random.default_rng(seed)
        return {"keys": random_keys((problem.rows, problem.n), problem.dtype, order, rng)}

    def sample(self, problem: TopkProblem) -> TopkProblem:
        """Return no more keys than tell how fast a peer is, and not how long it takes to launch."""
        n = min(problem.n, SAMPLE_KEYS)
        rows = min(problem.rows, max(1, SAMPLE_KEYS // max(n, 1)))
        return replace(problem, n=n, k=min(problem.k, n), rows=rows)

    def expected(self, problem: TopkProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy's stable sort of places gives; for the largest, of reversed rows."""
        keys = inputs["keys"]
        if problem.largest:
            order = np.argsort(keys[:, ::-1], axis=-1, kind="stable")[:, ::-1]
            places = problem.n - 1 - order[:, : problem.k]
        else:
            places = np.argsort(keys, axis=-1, kind="stable")[:, : problem.k]
        places = np.ascontiguousarray(places, dtype=np.int64)
        return {"values": np.take_along_axis(keys, places, axis=-1), "places": places}

    def compare(
        self, problem: TopkProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare values and places, which are to be the same: of equal keys the first come first.

        Other libraries promise that for values alone. Their places, as `ANY_PLACES`, need only
        differ from each other and hold these values.
        """
        values = exact(expected["values"], actual["values"])
        if not values.ok:
            return values
        if ANY_PLACES not in actual:
            return exact(expected["places"], actual["places"])
        places = actual[ANY_PLACES].reshape(expected["places"].shape)
        if not _are_places(places, problem.n):
            return UNLIKE
        return exact(expected["values"], np.take_along_axis(inputs["keys"], places, axis=-1))


def _are_places(places: np.ndarray[Any, Any], n: int) -> bool:
    """Return whether places are in their rows, and each of a row is another one."""
    if not places.size:
        return True
    ordered = np.sort(places, axis=-1)
    within = ordered[:, 0].min() >= 0 and ordered[:, -1].max() < n
    return bool(within and (ordered[:, 1:] != ordered[:, :-1]).all())


TOPK = Topk()
