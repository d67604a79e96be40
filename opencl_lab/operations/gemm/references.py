"""The host's BLAS as a reference for the matrix product."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from opencl_lab.reference.descriptor import Arrays

__all__ = ["blas_gemm"]


@cache
def _controller() -> Any:
    """Return what can hold BLAS to some threads, or None where threadpoolctl is missing."""
    try:
        from threadpoolctl import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            ThreadpoolController,
        )
    except ImportError:
        return None
    return ThreadpoolController()


def _limited(threads: int) -> AbstractContextManager[Any]:
    """Hold NumPy's BLAS to so many threads, where that can be done."""
    controller = _controller()
    if controller is None:
        return nullcontext()
    limits: AbstractContextManager[Any] = controller.limit(limits=threads, user_api="blas")
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
        with _limited(threads), np.errstate(all="ignore"):
            result = a @ b
            if problem.alpha != 1:
                result *= dtype(problem.alpha)
    else:
        result = np.zeros((problem.m, problem.n), dtype)
    if problem.beta:
        result += dtype(problem.beta) * inputs["c"]
    return {"result": result}
