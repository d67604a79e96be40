"""The first k keys as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.lab.measuring.difference import UNLIKE, Difference
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
from opencl_lab.lab.ops.select.references import (
    ANY_PLACES,
    TOPK_CALLS,
    by_numpy,
    topk_by_arrays,
    topk_by_sort,
    topk_by_torch,
)
from opencl_lab.lab.ops.shared import in_c, in_torch
from opencl_lab.lab.reference.descriptor import Arrays, HostReference
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.solver import TOPK_SOLVER
from opencl_lab.ops.sort.trials import ODD_SIZES

USUAL = 100


def _c_arguments(problem: TopkProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    results = outputs["values"], outputs["places"]
    return (inputs["keys"], *results, problem.rows, problem.n, problem.k)


class Topk(RowsOperation[TopkProblem]):
    """The largest or smallest keys of rows, in order, and their indices."""

    solver = TOPK_SOLVER
    calls = TOPK_CALLS
    summary = "Find the largest or smallest numbers, in order, and their indices."
    options = (
        Option("n", int, 1_000_000, "number of keys"),
        Option(
            "k",
            int,
            None,
            "number of keys to find",
            default_text=f"{USUAL}, or all if there are fewer",
        ),
        Option("rows", int, 1, "number of rows of n keys, each searched separately"),
        DTYPE,
        ORDER,
        Option("smallest", bool, False, "find the smallest keys, the smallest first"),
        Option(
            "axis", int, None, "axis of an input file to search along", default_text="the last, -1"
        ),
    )
    doing = "looking through", ": each column"
    small = MappingProxyType({"n": 8000, "k": 10})
    check_cases = (
        MappingProxyType({**ODD_SIZES, "k": 101, "largest": False}),
        MappingProxyType({"n": 150_001, "k": 1_003, "rows": 1, "largest": True}),
    )
    output = "values"
    references = (
        *in_c(
            "topk.c",
            "topk_heap",
            lambda problem: c_defines(problem.dtype, problem.largest, nan_first=True),
            _c_arguments,
        ),
        HostReference("numpy", by_numpy(topk_by_arrays, "values", ANY_PLACES)),
        HostReference("numpy:sort", by_numpy(topk_by_sort, "values", ANY_PLACES)),
        in_torch(topk_by_torch, "values", ANY_PLACES),
        from_host(TOPK_CALLS, "cupy"),
    )

    def described(
        self, chosen: Mapping[str, Any], n: int, dtype: np.dtype[Any], rows: int
    ) -> TopkProblem:
        """Return the problem of `rows` rows of n keys; `USUAL` is the default of k."""
        k = min(USUAL, n) if chosen["k"] is None else chosen["k"]
        return TopkProblem(n, k, dtype, rows, not chosen["smallest"])

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

    def sample(self, problem: TopkProblem) -> TopkProblem:
        """Return no more keys than tell how fast a peer is, and not how long it takes to launch."""
        rows, n = sample_shape(problem)
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
