"""The matrix product as an operation: references, data, tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import round_up
from opencl_lab.lab.files import convert
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.ops.gemm import freivalds
from opencl_lab.lab.ops.gemm.expected import compare, expected_result
from opencl_lab.lab.ops.gemm.mpi import KERNEL, check_plain, gemm_ranks, gemm_task
from opencl_lab.lab.ops.gemm.references import CALLS, blas_gemm, torch_product
from opencl_lab.lab.ops.shared import in_c, in_torch, refuse_given
from opencl_lab.lab.reference.descriptor import Arrays, HostReference, MpiReference
from opencl_lab.lab.reference.mpi import no_mpi
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import blas_threads, no_blas_control
from opencl_lab.ops.gemm.bind import bind, refuse_types, result_shape
from opencl_lab.ops.gemm.host.dispatch import how_made
from opencl_lab.ops.gemm.problem import (
    ACTIVATIONS,
    BIASES,
    ELEMENT_TYPES,
    PRECISIONS,
    TRANSPOSED,
    GemmProblem,
)
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.gemm.trials import ODD_SIZES

CHUNK = 1 << 22
"""Number of elements that `Gemm.compare` compares together."""
HALVES = 8
"""Elements of float16 in a vector of 16 bytes."""
FILE_SIZES = ("size", "m", "n", "k", "batch")
"""Options that a user's files determine."""


def _cost(problem: GemmProblem) -> int:
    """Return the number of products, which only slow references form one by one."""
    return problem.m * problem.n * problem.depth * problem.batch


def _c_type_of(problem: GemmProblem) -> dict[str, str]:
    check_plain(problem, "the C code", stacks=True)
    return {"REAL_T": c_type(problem.dtype)}


def _c_arguments(problem: GemmProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    ((_, moves_a, moves_b),) = problem.dimensions or ((1, False, False),)
    m, n, k, result = problem.m, problem.n, problem.k, outputs["result"]
    return (
        *(inputs["a"], inputs["b"], inputs.get("c", result), result),  # c not where beta is 0
        *(m, n, k),
        *(int(problem.trans_a), int(problem.trans_b)),
        *(problem.alpha.real, problem.beta.real),
        *(problem.batch, m * k * moves_a, k * n * moves_b),  # from one product to the next
    )


C_SEQ, C_OMP = in_c("gemm.c", "gemm", _c_type_of, _c_arguments, _cost)


class Gemm(Operation[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    solver = GEMM_SOLVER
    calls = CALLS
    summary = "Multiply matrices: alpha * op(A) @ op(B) + beta * C."
    options = (
        Option("size", int, 1024, "rows and columns of square matrices"),
        Option("m", int, None, "rows of the result", default_text="size"),
        Option("n", int, None, "columns of the result", default_text="size"),
        Option("k", int, None, "length of the sums", default_text="size"),
        Option("dtype", str, "float32", "type of the elements", ELEMENT_TYPES),
        Option("batch", int, 1, "number of products in a stack of matrices"),
        Option("alpha", complex, 1.0, "factor of the product, such as -0.5 or 1+2j"),
        Option("beta", complex, 0.0, "factor of C, which is not read if it is 0"),
        Option("trans_a", bool, False, "A is stored as k rows of m", also=(*TRANSPOSED, *"ntc")),
        Option("trans_b", bool, False, "B is stored as n rows of k", also=(*TRANSPOSED, *"ntc")),
        Option("precision", str, "native", "arithmetic of the products", PRECISIONS),
        Option("bias", str, None, "add a number for each row or column", BIASES[1:]),
        Option("activation", str, None, "function applied to the result", ACTIVATIONS[1:]),
    )
    size_option = "size"
    check_cases = tuple(
        MappingProxyType({**ODD_SIZES, "batch": 1, "stacks": (), **others})
        for others in (
            {},
            {"n": 3},
            {
                "batch": 6,
                "stacks": ((2, True, False), (3, False, True)),
                "bias": "column",
                "activation": "relu",
            },
            {"alpha": -0.5, "beta": 1.5},
        )
    )
    inputs = ("a", "b")
    output = "result"
    references = (
        C_SEQ,
        replace(C_SEQ, name="c:blocked", function="gemm_blocked"),
        C_OMP,
        HostReference("blas", blas_gemm, no_blas_control, threaded=True, held=blas_threads),
        in_torch(torch_product, "result"),
        from_host(CALLS, "cupy"),
        MpiReference("mpi:c", gemm_ranks, gemm_task, KERNEL, no_mpi, cost=_cost),
    )

    def check_changes(self, problem: GemmProblem) -> tuple[Mapping[str, Any], ...]:
        """Return the cases: for complex matrices without an activation, which they do not have.

        Where rows have whole vectors of halves, they have in all cases: kernels may need that.
        """
        if problem.is_complex:
            return tuple({**change, "activation": ""} for change in self.check_cases)
        rows = problem.shape_a[-1], problem.shape_b[-1]
        if problem.dtype.itemsize > 2 or any(length % HALVES for length in rows):
            return self.check_cases
        return tuple(
            {**change, **{name: round_up(change[name], HALVES) for name in "mnk"}}
            for change in self.check_cases
        )

    def problem(self, **options: Any) -> GemmProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        size = chosen.pop("size")
        for name in ("m", "n", "k"):
            chosen[name] = size if chosen[name] is None else chosen[name]
        for name in ("bias", "activation"):
            chosen[name] = chosen[name] or ""
        return GemmProblem(**{**chosen, "dtype": np.dtype(chosen["dtype"])})

    def in_parts(
        self, problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return the tiles of a product that does not fit; for `hybrid`, the side."""
        return how_made(problem, device, algorithm, config)

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[GemmProblem, Arrays]:
        """Multiply `a` by `b`, and add `c` where beta is not 0; in `dtype` if that is given."""
        chosen = self.with_defaults(options)
        refuse_given(options, FILE_SIZES, "files")
        if chosen["bias"]:
            raise InvalidProblem("bias is for random data; with arrays, call opencl_lab.gemm")
        if chosen["beta"] and "c" not in arrays:
            raise InvalidProblem("beta is for random data; with arrays, call opencl_lab.gemm")
        matrices = {
            name: convert(array, chosen["dtype"]) if "dtype" in options else array
            for name, array in arrays.items()
        }
        if any(array.dtype.name not in ELEMENT_TYPES for array in matrices.values()):
            refuse_types(matrices)
        names = ("alpha", "beta", "trans_a", "trans_b", "precision", "activation")
        values = {name: chosen[name] for name in names}
        return bind(matrices["a"], matrices["b"], matrices.get("c"), **values)

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result in the shape that the stacks of a user's matrices broadcast to."""
        result = outputs[self.output]
        if not arrays:
            return result
        chosen = self.with_defaults(options)
        factors = arrays["a"], arrays["b"]
        return result.reshape(result_shape(*factors, chosen["trans_a"], chosen["trans_b"]))

    def generate(self, problem: GemmProblem, seed: int, **options: Any) -> Arrays:
        """Return uniform numbers between -1 and 1, a C where beta is not 0, and a bias if asked.

        Both components of complex numbers are such numbers.
        """
        rng = np.random.default_rng(seed)
        shapes = {"a": problem.shape_a, "b": problem.shape_b}
        if problem.beta:
            shapes["c"] = problem.shape
        if problem.bias:
            shapes["bias"] = (problem.m if problem.bias == "row" else problem.n,)
        return {name: _uniform(rng, shape, problem) for name, shape in shapes.items()}

    def expected(self, problem: GemmProblem, inputs: Arrays) -> Arrays:
        """Return the result by the host's BLAS in float64 or complex128.

        It is a placeholder if that takes too much time or memory.
        """
        if freivalds.too_large(problem):
            return {"result": freivalds.stand_in(problem)}
        return {"result": expected_result(problem, inputs)}

    def compare(
        self, problem: GemmProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare within the a-priori error bound of the sums, see `expected.compare`.

        With a placeholder, Freivalds' check is used.
        """
        if freivalds.stands_in(expected["result"]):
            return freivalds.check(problem, inputs, actual["result"])
        return compare(problem, inputs, expected["result"], actual["result"], CHUNK)


def _uniform(
    rng: np.random.Generator, shape: tuple[int, ...], problem: GemmProblem
) -> np.ndarray[Any, Any]:
    """Return random numbers between -1 and 1."""
    real = problem.real_type.type
    if not problem.is_complex:
        return (2 * rng.random(shape, real) - 1).astype(problem.dtype, copy=False)
    made = np.empty(shape, problem.dtype)
    made.real, made.imag = 2 * rng.random(shape, real) - 1, 2 * rng.random(shape, real) - 1
    return made


GEMM = Gemm()
