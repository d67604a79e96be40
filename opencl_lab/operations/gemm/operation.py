"""The matrix product as an operation: references, data, tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.files import convert
from opencl_lab.kernels import c_type
from opencl_lab.measuring.difference import (
    UNLIKE,
    Difference,
    errors_of,
    growth,
    largest_share,
    over_parts,
)
from opencl_lab.operation import Operation, Option
from opencl_lab.operations.gemm import freivalds
from opencl_lab.operations.gemm.bind import REAL_TYPES, bind
from opencl_lab.operations.gemm.calls import CALLS
from opencl_lab.operations.gemm.elsewhere import how_made
from opencl_lab.operations.gemm.functions import gemm
from opencl_lab.operations.gemm.mpi import KERNEL, gemm_ranks, gemm_task
from opencl_lab.operations.gemm.problem import PRECISIONS, GemmProblem
from opencl_lab.operations.gemm.references import blas_gemm, torch_gemm
from opencl_lab.operations.gemm.solver import GEMM_SOLVER
from opencl_lab.reference.descriptor import (
    Arrays,
    CReference,
    HostReference,
    MpiReference,
    needs,
)
from opencl_lab.reference.mpi import no_mpi
from opencl_lab.reference.peers import from_host
from opencl_lab.reference.threads import blas_threads, no_blas_control, torch_threads

__all__ = ["GEMM", "Gemm"]

Array = np.ndarray[Any, Any]

CHUNK = 1 << 22
"""Elements that `Gemm.compare` looks at together."""


def _steps(problem: GemmProblem) -> int:
    """Return how many products are formed, but by BLAS as slowly as can be."""
    return problem.m * problem.n * problem.depth


def _c_reference(name: str, function: str, threaded: bool = False) -> CReference:
    return CReference(
        name,
        "gemm.c",
        function,
        defines=lambda problem: {"REAL_T": c_type(problem.dtype)},
        arguments=lambda problem, inputs, outputs: (
            inputs["a"],
            inputs["b"],
            inputs.get("c", outputs["result"]),  # not read where beta is 0
            outputs["result"],
            problem.m,
            problem.n,
            problem.k,
            int(problem.trans_a),
            int(problem.trans_b),
            float(problem.alpha),
            float(problem.beta),
        ),
        threaded=threaded,
        steps=_steps,
    )


class Gemm(Operation[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    solver = GEMM_SOLVER
    calls = CALLS
    summary = "Multiply matrices: alpha * op(A) @ op(B) + beta * C."
    options = (
        Option("size", int, 1024, "rows and columns of square matrices"),
        Option("m", int, None, "rows of the result; default: size"),
        Option("n", int, None, "columns of the result; default: size"),
        Option("k", int, None, "length of the sums; default: size"),
        Option("dtype", str, "float32", "type of the elements", REAL_TYPES),
        Option("alpha", float, 1.0, "factor of the product"),
        Option("beta", float, 0.0, "factor of C, which is not read where it is 0"),
        Option("trans_a", bool, False, "A is stored as k rows of m"),
        Option("trans_b", bool, False, "B is stored as n rows of k"),
        Option("precision", str, "native", "how the arithmetic is done", PRECISIONS),
    )
    size_option = "size"
    check_cases = tuple(
        MappingProxyType({"m": 211, "n": 283, "k": 307, "batch": 1, "stacks": (), **scalars})
        for scalars in ({}, {"alpha": -0.5, "beta": 1.5})
    )
    inputs = ("a", "b")
    output = "result"
    references = (
        _c_reference("c:seq", "gemm_seq"),
        _c_reference("c:blocked", "gemm_blocked"),
        _c_reference("c:omp", "gemm_omp", threaded=True),
        HostReference("blas", blas_gemm, no_blas_control, threaded=True, held=blas_threads),
        HostReference("torch", torch_gemm, needs("torch"), threaded=True, held=torch_threads),
        from_host(CALLS, "cupy"),
        MpiReference("mpi:c", gemm_ranks, gemm_task, KERNEL, no_mpi, steps=_steps),
    )

    def problem(self, **options: Any) -> GemmProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        size = chosen.pop("size")
        for name in ("m", "n", "k"):
            chosen[name] = size if chosen[name] is None else chosen[name]
        return GemmProblem(**{**chosen, "dtype": np.dtype(chosen["dtype"])})

    def in_parts(
        self, problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return of which tiles a product is made that does not fit; for `hybrid`, where."""
        return how_made(problem, device, algorithm, config, gemm)

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[GemmProblem, Arrays]:
        """Multiply `a` by `b`, and add `c` where beta is not 0; in `dtype` if that is given."""
        chosen = self.with_defaults(options)
        given = [name for name in ("size", "m", "n", "k") if name in options]
        if given:
            raise InvalidProblem(f"{given[0]} is given by the input files; leave it out")
        matrices = {
            name: convert(array, chosen["dtype"]) if "dtype" in options else array
            for name, array in arrays.items()
        }
        return bind(
            matrices["a"],
            matrices["b"],
            matrices.get("c"),
            alpha=chosen["alpha"],
            beta=chosen["beta"],
            trans_a=chosen["trans_a"],
            trans_b=chosen["trans_b"],
            precision=chosen["precision"],
        )

    def generate(self, problem: GemmProblem, seed: int, **options: Any) -> Arrays:
        """Return uniform numbers between -1 and 1, and a C where beta is not 0."""
        rng = np.random.default_rng(seed)
        shapes = {"a": problem.shape_a, "b": problem.shape_b}
        if problem.beta:
            shapes["c"] = (problem.m, problem.n)
        return {
            name: 2 * rng.random(shape, problem.dtype.type) - 1 for name, shape in shapes.items()
        }

    def expected(self, problem: GemmProblem, inputs: Arrays) -> Arrays:
        """Return the result by the host's BLAS in float64; a stand-in where that takes too long."""
        if freivalds.too_large(problem):
            return {"result": freivalds.stand_in(problem)}
        result = np.zeros((problem.m, problem.n))
        with np.errstate(invalid="ignore", over="ignore"):
            if problem.depth:
                a, b = _factors(problem, inputs)
                result = problem.alpha.real * (a @ b)
            if problem.beta:
                result += problem.beta.real * inputs["c"].astype(np.float64)
            return {"result": result.astype(problem.dtype)}

    def compare(
        self, problem: GemmProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare within the a-priori error bound of a sum of k products.

        Whatever the order of the sum, its error is at most ``gamma |a| |b|``, see `growth`.
        By Cauchy and Schwarz the norms of the rows of a and of the columns of b bound
        ``|a| |b|``. A few roundings are added for alpha, beta and the expected result.
        """
        if freivalds.stands_in(expected["result"]):
            return freivalds.check(problem, inputs, actual["result"])
        right, given = expected["result"], actual["result"]
        if given.shape != right.shape or given.dtype != right.dtype:
            return UNLIKE
        terms = problem.depth + 4
        gamma, least = growth(terms, problem.dtype), terms * float(np.finfo(problem.dtype).tiny)
        rows, columns = np.zeros(problem.m), np.zeros(problem.n)
        if problem.depth:
            with np.errstate(invalid="ignore", over="ignore"):
                a, b = _factors(problem, inputs)
                rows = np.abs(problem.alpha) * _norms(a)
                columns = _norms(b.T)
        if problem.beta:
            rows = 2 * rows  # |beta c| is at most |result| + |alpha a b|

        def of_part(part: slice) -> tuple[Array, Array, float]:
            reference = right[part].astype(np.float64)
            error, relative = errors_of(reference, given[part].astype(np.float64))
            with np.errstate(invalid="ignore", over="ignore"):
                sums = gamma * np.outer(rows[part], columns) + least
                # What the expected result itself may lack comes on top.
                return error, relative, largest_share(error, sums + gamma * np.abs(reference))

        step = max(1, CHUNK // max(problem.n, 1))
        parts = (slice(first, first + step) for first in range(0, problem.m, step))
        return over_parts(parts, of_part)


def _norms(matrix: Array) -> Array:
    """Return the norms of rows; scaled, as squares overflow where norms do not."""
    largest = float(np.max(np.abs(matrix), initial=0))
    scale = largest if 1e150 < largest < np.inf else 1.0
    scaled = matrix if scale == 1 else matrix / scale
    norms: Array = scale * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return norms


def _factors(problem: GemmProblem, inputs: Arrays) -> tuple[Array, ...]:
    """Return op(a) and op(b) in float64."""
    a = inputs["a"].T if problem.trans_a else inputs["a"]
    b = inputs["b"].T if problem.trans_b else inputs["b"]
    return a.astype(np.float64), b.astype(np.float64)


GEMM = Gemm()
