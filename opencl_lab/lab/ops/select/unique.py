"""Each key once as an operation: references, data, comparison."""

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
    ORDERS,
    SAMPLE_KEYS,
    arranged,
    c_defines,
    exact,
    keys_of,
    random_keys,
)
from opencl_lab.lab.ops.select.calls import UNIQUE_CALLS
from opencl_lab.lab.ops.select.references import numpy_unique, torch_unique
from opencl_lab.lab.reference.descriptor import (
    Arrays,
    CReference,
    HostReference,
    OutputsLike,
    needs,
)
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import torch_threads
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.select.solver import UNIQUE_SOLVER
from opencl_lab.ops.sort.problem import KEY_TYPES

OFTEN = 10
"""How often a key is there on average, unless options say otherwise."""


def _c_defines(problem: UniqueProblem) -> dict[str, str]:
    return {**c_defines(problem.dtype), "COUNTS": str(int(problem.counts))}


def _c_arguments(problem: UniqueProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    counts = outputs["counts" if problem.counts else "found"]  # which is not touched
    return (inputs["keys"], outputs["values"], outputs["found"], counts, problem.n)


class Unique(Operation[UniqueProblem]):
    """Each key once, in order, and how often it is there, as `numpy.unique` says.

    Algorithms write arrays as long as the keys, whose beginning is the result, and say in `found`
    how long that is.
    """

    solver = UNIQUE_SOLVER
    calls = UNIQUE_CALLS
    summary = "Find the different numbers, in order."
    options = (
        Option("n", int, 1_000_000, "how many keys"),
        Option("dtype", str, "int32", "type of the keys", KEY_TYPES),
        Option(
            "distinct",
            int,
            None,
            f"how many different ones are drawn, at most; default: n / {OFTEN}",
            about_data=True,
        ),
        Option("order", str, "random", "how generated keys are arranged", ORDERS, about_data=True),
        Option("counts", bool, False, "how often each is there, too"),
    )
    size_option = "n"
    check_cases = tuple(
        MappingProxyType({"n": 20_011, "counts": counts}) for counts in (True, False)
    )
    inputs = ("keys",)
    output = "values"
    references = (
        CReference("c:seq", "unique.c", "unique_seq", _c_defines, _c_arguments),
        CReference("c:omp", "unique.c", "unique_omp", _c_defines, _c_arguments, threaded=True),
        HostReference("numpy", numpy_unique),
        HostReference("torch", torch_unique, needs("torch"), threaded=True, held=torch_threads),
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
        """Return the counts, if these were asked for."""
        return {name: array for name, array in self._found(outputs).items() if name == "counts"}

    def columns(
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return values beside their counts, if these were asked for."""
        found = self._found(outputs)
        if "counts" not in found:
            return None
        return {"value": found["values"], "count": found["counts"]}

    def generate(self, problem: UniqueProblem, seed: int, **options: Any) -> Arrays:
        """Return keys of which as many are different as the options say, arranged as asked."""
        chosen = self.with_defaults(options)
        rng = np.random.default_rng(seed)
        n, distinct = problem.n, chosen["distinct"]
        distinct = min(n, max(1, n // OFTEN) if distinct is None else distinct)
        drawn = random_keys((1, distinct), problem.dtype, "random", rng)
        keys = drawn[:, rng.integers(0, distinct, n)] if distinct else drawn
        return {"keys": arranged(keys, chosen["order"], rng)[0]}

    def room(self, problem: UniqueProblem, expected: Arrays) -> OutputsLike:
        """Return arrays that hold the values and counts of keys that are all different."""
        like = {name: ((problem.n,), array.dtype) for name, array in expected.items()}
        return {**like, "found": ((1,), np.dtype(np.int64))}

    def sample(self, problem: UniqueProblem) -> UniqueProblem:
        """Return no more keys than tell how fast a peer is, and not how long it takes to launch."""
        return replace(problem, n=min(problem.n, SAMPLE_KEYS))

    def expected(self, problem: UniqueProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy gives."""
        values, counts = np.unique(inputs["keys"], return_counts=True)
        outputs = {"values": values, "found": np.array([values.size])}
        return {**outputs, "counts": counts} if problem.counts else outputs

    def compare(
        self, problem: UniqueProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare how many were found, these, and their counts: all are to be the same."""
        found = self._found(actual)
        names = ("values", "counts") if problem.counts else ("values",)
        differences = [exact(expected[name], found[name]) for name in names]
        return max(differences, key=lambda difference: not difference.ok)

    @staticmethod
    def _found(outputs: Arrays) -> Arrays:
        """Return the part of values and counts that holds a result; without keys that is nothing.

        What public calls return is no longer than that.
        """
        results: Arrays = {n: outputs[n] for n in ("values", "counts") if n in outputs}
        if "found" not in outputs or not results["values"].size:
            return results
        return {name: array[: int(outputs["found"][0])] for name, array in results.items()}


UNIQUE = Unique()
