"""The matrix product over MPI: a block of rows for each rank.

The 1-D row distribution of textbooks (V. Kumar et al., "Introduction to Parallel Computing",
section 8.2): rank 0 scatters the rows of A and C and broadcasts B; each rank multiplies its rows
by the sequential blocked C function; rank 0 gathers the result. With more ranks, each has less
arithmetic, but B is sent to more of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.descriptor import Arrays, CReference

C_TYPES = {"float32": "float", "float64": "double"}
KERNEL = CReference(
    "mpi:c",
    "gemm.c",
    "gemm_blocked",
    defines=lambda task: {"REAL_T": C_TYPES[task["dtype"]]},
    arguments=lambda task, inputs, outputs: (
        inputs["a"],
        inputs["b"],
        inputs["c"],
        outputs["result"],
        *(len(outputs["result"]), task["n"], task["k"]),
        *(0, task["trans_b"], task["alpha"], task["beta"]),
        *(1, 0, 0),  # one product
    ),
)


def check_plain(problem: Any, name: str, stacks: bool = False, numbers: str = "f") -> None:
    """Raise `ReferenceUnavailable` unless every BLAS has this product.

    With `stacks`, it may be a stack of one dimension. `numbers` are the supported kinds of numbers
    with 32 or more bits: ``f`` real, ``c`` complex. `name` is the reference in messages.
    """
    if problem.dtype.kind not in numbers or problem.dtype.itemsize == 2:
        raise ReferenceUnavailable(f"{name} does not multiply {problem.dtype}")
    if problem.bias or problem.activation:
        raise ReferenceUnavailable(f"{name} has neither a bias nor an activation")
    if (problem.conj_a > problem.trans_a) or (problem.conj_b > problem.trans_b):
        raise ReferenceUnavailable(f"{name} takes the conjugates of transposes only")
    if len(problem.dimensions) > (1 if stacks else 0):
        plural = "stacks of one dimension" if stacks else "one pair of matrices"
        raise ReferenceUnavailable(f"{name} multiplies {plural} only")


def gemm_task(problem: Any) -> Mapping[str, Any]:
    """Return the values of a problem that ranks need, so that they need not import its class."""
    check_plain(problem, "the product over MPI")
    return {
        "m": problem.m,
        "n": problem.n,
        "k": problem.depth,
        "dtype": problem.dtype.name,
        "trans_a": int(problem.trans_a),
        "trans_b": int(problem.trans_b),
        "alpha": problem.alpha.real,
        "beta": problem.beta.real,
    }


def gemm_ranks(
    world: Any, task: Mapping[str, Any], inputs: Arrays
) -> tuple[Callable[[], None], Arrays]:
    """Return a function that multiplies once with all ranks, and its outputs, on rank 0.

    Rank 0 has the matrices as `GemmProblem` stores them; the inputs of other ranks are empty.
    """
    mpi = importlib.import_module("mpi4py.MPI")
    rank, size = world.Get_rank(), world.Get_size()
    m, n, k = task["m"], task["n"], task["k"]
    dtype = np.dtype(task["dtype"])
    share, rest = divmod(m, size)
    counts = [share + (index < rest) for index in range(size)]
    starts = [sum(counts[:index]) for index in range(size)]
    mine = counts[rank]
    result = np.full((m, n), np.nan, dtype) if rank == 0 else np.empty((mine, n), dtype)
    b = inputs["b"] if rank == 0 else np.empty((n, k) if task["trans_b"] else (k, n), dtype)
    stored_a = inputs["a"] if rank == 0 else None
    a = stored_a
    if a is None or task["trans_a"]:  # rows of a transposed A are copied before they are sent
        a = np.empty((m if rank == 0 else mine, k), dtype)
    c = result
    if task["beta"]:
        c = inputs["c"] if rank == 0 else np.empty((mine, n), dtype)
    run = load(KERNEL, task).bind(
        *KERNEL.arguments(task, {"a": a[:mine], "b": b, "c": c[:mine]}, {"result": result[:mine]})
    )
    # Counts are in rows, since numbers of elements may exceed 32 bits.
    element = mpi.FLOAT if dtype == np.float32 else mpi.DOUBLE
    long_row, short_row = (element.Create_contiguous(max(1, length)).Commit() for length in (n, k))
    b_row = short_row if task["trans_b"] else long_row

    def scatter(whole: np.ndarray[Any, Any], row: Any) -> None:
        own = mpi.IN_PLACE if rank == 0 else [whole, mine, row]
        world.Scatterv([whole, (counts, starts), row] if rank == 0 else None, own, root=0)

    def call() -> None:
        if not m * n:
            return
        if k:
            if rank == 0 and task["trans_a"]:
                np.copyto(a, stored_a.T)  # type: ignore[union-attr]
            scatter(a, short_row)
            world.Bcast([b, len(b), b_row], root=0)
        if task["beta"]:
            scatter(c, long_row)
        run()
        own = mpi.IN_PLACE if rank == 0 else [result, mine, long_row]
        world.Gatherv(own, [result, (counts, starts), long_row] if rank == 0 else None, root=0)

    return call, {"result": result} if rank == 0 else {}
