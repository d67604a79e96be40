"""The matrix product over MPI: blocks of rows, one to each rank.

The 1-D row distribution of textbooks (V. Kumar et al., "Introduction to Parallel Computing",
section 8.2, has it among others): rank 0 scatters rows of A and of C, broadcasts all of B,
each rank multiplies its rows by the sequential blocked C kernel, and rank 0 gathers the result.
Communication grows with B times the ranks, arithmetic shrinks with the ranks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opencl_lab.lab.ops.gemm.references import check_plain
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


def gemm_task(problem: Any) -> Mapping[str, Any]:
    """Return what ranks need to know of a problem, without what it takes to import its class.

    Raises
    ------
    ReferenceUnavailable
        If it is more than one product of float32 or float64.
    """
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
    """Return the call that multiplies once with all ranks, and what it writes to on rank 0.

    Parameters
    ----------
    world : mpi4py.MPI.Comm
    task : mapping
        As of `gemm_task`.
    inputs : dict of arrays
        On rank 0 the matrices as `GemmProblem` stores them; empty elsewhere.
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
    if a is None or task["trans_a"]:  # of a transposed one, rows are gathered before they are sent
        a = np.empty((m if rank == 0 else mine, k), dtype)
    c = result
    if task["beta"]:
        c = inputs["c"] if rank == 0 else np.empty((mine, n), dtype)
    run = load(KERNEL, task).bind(
        *KERNEL.arguments(task, {"a": a[:mine], "b": b, "c": c[:mine]}, {"result": result[:mine]})
    )
    # Counted in rows, which no count of 32 bits is too small for.
    element = mpi.FLOAT if dtype == np.float32 else mpi.DOUBLE
    long_row, short_row = (
        element.Create_contiguous(max(1, n)),
        element.Create_contiguous(max(1, k)),
    )
    b_row = short_row if task["trans_b"] else long_row
    for kind in (long_row, short_row):
        kind.Commit()

    def scatter(whole: np.ndarray[Any, Any], row: Any) -> None:
        part = mpi.IN_PLACE if rank == 0 else [whole, mine, row]
        world.Scatterv([whole, (counts, starts), row] if rank == 0 else None, part, root=0)

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
        part = mpi.IN_PLACE if rank == 0 else [result, mine, long_row]
        world.Gatherv(part, [result, (counts, starts), long_row] if rank == 0 else None, root=0)

    return call, {"result": result} if rank == 0 else {}
