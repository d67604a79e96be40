"""The host's BLAS as a reference for the matrix product."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from opencl_lab.reference.descriptor import Arrays

__all__ = ["blas_gemm"]


def _limited(threads: int) -> AbstractContextManager[Any]:
    """Hold NumPy's BLAS to so many threads, where threadpoolctl is installed to do it."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(threads, user_api="blas")
    return limits


def blas_gemm(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Multiply matrices by the BLAS that NumPy was built with.

    Parameters
    ----------
    problem : GemmProblem
    inputs : dict of numpy.ndarray
        ``a``, ``b`` and, where beta is not 0, ``c``.
    threads : int
        Threads that BLAS may use.
    """
    dtype = problem.dtype.type
    if problem.depth:
        a = inputs["a"].T if problem.trans_a else inputs["a"]
        b = inputs["b"].T if problem.trans_b else inputs["b"]
        with _limited(threads):
            result = a @ b
        if problem.alpha != 1:
            result *= dtype(problem.alpha)
    else:
        result = np.zeros((problem.m, problem.n), dtype)
    if problem.beta:
        result += dtype(problem.beta) * inputs["c"]
    return {"result": result}
