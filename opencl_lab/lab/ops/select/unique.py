"""Distinct keys as an operation: references, data, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.ops.keys import (
    DTYPE,
    ORDER,
    SAMPLE_KEYS,
    arranged,
    c_defines,
    exact,
    keys_of,
    random_keys,
)
from opencl_lab.lab.ops.select.references import UNIQUE_CALLS, by_numpy, unique_by_any
from opencl_lab.lab.ops.shared import in_c, in_torch
from opencl_lab.lab.reference.descriptor import Arrays, HostReference, OutputsLike
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.select.solver import UNIQUE_SOLVER
from opencl_lab.ops.sort.trials import ODD_SIZES

OFTEN = 10
"""Default mean number of occurrences of a key."""


def _c_defines(problem: UniqueProblem) -> dict[str, str]:
    return {**c_defines(problem.dtype), "COUNTS": str(int(problem.counts))}


def _c_arguments(problem: UniqueProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    counts = outputs[
        "counts" if problem.counts else "found"
    ]  # only written if counts are requested
    return (inputs["keys"], outputs["values"], outputs["found"], counts, problem.n)


class Unique(Operation[UniqueProblem]):
    """Distinct keys in ascending order, and how often each occurs, as `numpy.unique`.

    Algorithms write arrays as long as the keys. The result is at the beginning; `found` has its
    length.
    """

    solver = UNIQUE_SOLVER
    calls = UNIQUE_CALLS
    summary = "Find the distinct numbers, in ascending order."
    options = (
        Option("n", int, 1_000_000, "number of keys"),
        DTYPE,
        Option(
            "distinct",
            int,
            None,
            "largest number of distinct keys in generated data",
            about_data=True,
            default_text=f"n / {OFTEN}",
        ),
        ORDER,
        Option("counts", bool, False, "also count how often each key occurs"),
    )
    size_option = "n"
    small = MappingProxyType({"n": 4000})
    check_cases = tuple(
        MappingProxyType({"n": ODD_SIZES["n"], "counts": counts}) for counts in (True, False)
    )
    inputs = ("keys",)
    output = "values"
    references = (
        *in_c("unique.c", "unique", _c_defines, _c_arguments),
        HostReference("numpy", by_numpy(unique_by_any, "values", "counts")),
        in_torch(unique_by_any, "values", "counts", no_nan="counts each NaN as a different key"),
        from_host(UNIQUE_CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> UniqueProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        if chosen["distinct"] is not None and chosen["distinct"] < 1:
            raise InvalidProblem(f"distinct must be 1 or more, not {chosen['distinct']}")
        return UniqueProblem(chosen["n"], np.dtype(chosen["dtype"]), chosen["counts"])

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[UniqueProblem, Arrays]:
        """Take all elements of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        keys = np.ascontiguousarray(keys_of(arrays, options, ("n",))).reshape(-1)
        return UniqueProblem(keys.size, keys.dtype, chosen["counts"]), {"keys": keys}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the values that were found."""
        return self._found(outputs)["values"]

    def beside(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Arrays:
        """Return the counts, if requested."""
        return {name: array for name, array in self._found(outputs).items() if name == "counts"}

    def columns(
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return values beside their counts, if requested."""
        found = self._found(outputs)
        if "counts" not in found:
            return None
        return {"value": found["values"], "count": found["counts"]}

    def generate(self, problem: UniqueProblem, seed: int, **options: Any) -> Arrays:
        """Return random keys with the number of distinct ones and the order of the options."""
        chosen = self.with_defaults(options)
        rng = np.random.default_rng(seed)
        n, distinct = problem.n, chosen["distinct"]
        distinct = min(n, max(1, n // OFTEN) if distinct is None else distinct)
        drawn = random_keys((1, distinct), problem.dtype, "random", rng)
        keys = drawn[:, rng.integers(0, distinct, n)] if distinct else drawn
        return {"keys": arranged(keys, chosen["order"], rng)[0]}

    def room(self, problem: UniqueProblem, expected: Arrays) -> OutputsLike:
        """Return arrays with room for the values and counts of keys that are all distinct."""
        like = {name: ((problem.n,), array.dtype) for name, array in expected.items()}
        return {**like, "found": ((1,), np.dtype(np.int64))}

    def sample(self, problem: UniqueProblem) -> UniqueProblem:
        """Return a smaller problem from which the speed of a peer can be estimated."""
        return replace(problem, n=min(problem.n, SAMPLE_KEYS))

    def expected(self, problem: UniqueProblem, inputs: Arrays) -> Arrays:
        """Return the result of `numpy.unique`."""
        values, counts = np.unique(inputs["keys"], return_counts=True)
        outputs = {"values": values, "found": np.array([values.size])}
        return {**outputs, "counts": counts} if problem.counts else outputs

    def compare(
        self, problem: UniqueProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare the number of values, the values and their counts exactly."""
        found = self._found(actual)
        names = ("values", "counts") if problem.counts else ("values",)
        differences = [exact(expected[name], found[name]) for name in names]
        return max(differences, key=lambda difference: not difference.ok)

    @staticmethod
    def _found(outputs: Arrays) -> Arrays:
        """Return the elements of values and counts that belong to the result.

        Results of public calls have no others.
        """
        results: Arrays = {n: outputs[n] for n in ("values", "counts") if n in outputs}
        if "found" not in outputs or not results["values"].size:
            return results
        return {name: array[: int(outputs["found"][0])] for name, array in results.items()}


UNIQUE = Unique()
