"""Searches in sorted keys as an operation: references, data, comparison."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.files import convert
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.ops.keys import (
    DTYPE,
    ORDER,
    SAMPLE_KEYS,
    arranged,
    c_defines,
    exact,
    random_keys,
)
from opencl_lab.lab.ops.select.references import (
    SEARCH_CALLS,
    by_numpy,
    search_by_arrays,
    search_by_torch,
)
from opencl_lab.lab.ops.shared import in_c, in_torch, refuse_given
from opencl_lab.lab.reference.descriptor import Arrays, HostReference
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.ops.select.functions import of_one_type, put_beyond
from opencl_lab.ops.select.problem import SearchProblem
from opencl_lab.ops.select.search import SEARCH as SEARCH_SOLVER
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.trials import ODD_SIZES
from opencl_lab.runtime.arrays import native


def _c_defines(problem: SearchProblem) -> dict[str, str]:
    return {**c_defines(problem.dtype), "RIGHT": str(int(problem.right))}


def _c_arguments(problem: SearchProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    return (inputs["keys"], inputs["values"], outputs["places"], problem.n, problem.m)


class SearchSorted(Operation[SearchProblem]):
    """The indices at which to insert values into sorted keys, as `numpy.searchsorted`."""

    solver = SEARCH_SOLVER
    calls = SEARCH_CALLS
    summary = "Find the indices at which numbers would be inserted into sorted ones."
    options = (
        Option("n", int, 1_000_000, "number of sorted keys"),
        Option("m", int, None, "number of values to look for", default_text="n"),
        replace(DTYPE, help="type of keys and values"),
        replace(ORDER, help="how generated values are arranged"),
        Option("right", bool, False, "return indices after equal keys instead of before them"),
    )
    size_option = "n"
    small = MappingProxyType({"n": 4000})
    check_cases = tuple(
        MappingProxyType({"n": ODD_SIZES["n"], "m": 10_007, "right": right})
        for right in (False, True)
    )
    inputs = ("keys", "values")
    output = "places"
    references = (
        *in_c("searchsorted.c", "search", _c_defines, _c_arguments),
        HostReference("numpy", by_numpy(search_by_arrays, "places")),
        in_torch(search_by_torch, "places", no_nan="does not look for NaN"),
        from_host(SEARCH_CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> SearchProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        m = chosen["n"] if chosen["m"] is None else chosen["m"]
        return SearchProblem(chosen["n"], m, np.dtype(chosen["dtype"]), chosen["right"])

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[SearchProblem, Arrays]:
        """Look for the array `values` among `keys`, both in the type in which NumPy compares them.

        Keys that are not in order are refused, and types that cannot be compared.
        """
        chosen = self.with_defaults(options)
        refuse_given(options, ("n", "m"), "files")
        keys, values = (native(arrays[name]).reshape(-1) for name in self.inputs)
        if "dtype" in options:
            keys, values = (convert(array, options["dtype"]) for array in (keys, values))
        keys, values = of_one_type(keys, values)
        problem = SearchProblem(keys.size, values.size, keys.dtype, chosen["right"])
        order = codes(np.ascontiguousarray(keys))
        if (order[1:] < order[:-1]).any():
            raise InvalidProblem("the keys are not in order; sort them first")
        return problem, {"keys": keys, "values": values}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the places in the shape of the user's values."""
        places = outputs[self.output]
        if arrays and "dtype" not in options:
            places = places.copy()
            put_beyond(places, arrays["keys"], arrays["values"])
        return places.reshape(arrays["values"].shape) if arrays else places

    def generate(self, problem: SearchProblem, seed: int, **options: Any) -> Arrays:
        """Return sorted keys, and values of which half are among the keys."""
        order = self.with_defaults(options)["order"]
        rng = np.random.default_rng(seed)
        keys = random_keys((1, problem.n), problem.dtype, "sorted", rng)[0]
        values = random_keys((1, problem.m), problem.dtype, "random", rng)[0]
        if problem.n:
            here = rng.random(problem.m) < 0.5
            values[here] = rng.choice(keys, np.count_nonzero(here))
        return {"keys": keys, "values": arranged(values[None], order, rng)[0]}

    def sample(self, problem: SearchProblem) -> SearchProblem:
        """Return no more values than tell how fast a peer is."""
        return replace(problem, m=min(problem.m, SAMPLE_KEYS))

    def expected(self, problem: SearchProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy gives."""
        keys, values = inputs["keys"], inputs["values"]
        places = np.searchsorted(keys, values, "right" if problem.right else "left")
        return {"places": places.astype(np.int64, copy=False)}

    def compare(
        self, problem: SearchProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Places are whole numbers: the tolerance is zero."""
        return exact(expected["places"], actual["places"])


SEARCHSORTED = SearchSorted()
