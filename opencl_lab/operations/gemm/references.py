"""Matrix products of other libraries on the host, as references."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.reference.descriptor import Arrays

__all__ = ["blas_gemm", "factors", "torch_gemm", "torch_product"]


def factors(problem: Any, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return op(a) and op(b), as views of arrays of any library."""
    a = arrays["a"].T if problem.trans_a else arrays["a"]
    b = arrays["b"].T if problem.trans_b else arrays["b"]
    return a, b


def blas_gemm(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Multiply matrices by the BLAS that NumPy was built with.

    Parameters
    ----------
    problem : GemmProblem
    inputs : dict of numpy.ndarray
        ``a``, ``b`` and, where beta is not 0, ``c``.
    threads : int
        Not used: whoever calls holds BLAS to them, see `opencl_lab.reference.threads`.
    """
    dtype = problem.dtype.type
    if problem.depth:
        a, b = factors(problem, inputs)
        with np.errstate(all="ignore"):
            result = a @ b
            if problem.alpha != 1:
                result *= dtype(problem.alpha)
    else:
        result = np.zeros((problem.m, problem.n), dtype)
    if problem.beta:
        result += dtype(problem.beta) * inputs["c"]
    return {"result": result}


def torch_gemm(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Multiply matrices by PyTorch on the processor, whose BLAS is MKL on most of them.

    Parameters
    ----------
    problem, inputs, threads
        As of `blas_gemm`.
    """
    torch = importlib.import_module("torch")
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    return {"result": torch_product(problem, torch, tensors).numpy()}


def torch_product(problem: Any, torch: Any, tensors: Mapping[str, Any]) -> Any:
    """Return the result of `torch_gemm` for tensors on any of PyTorch's devices."""
    a, b = factors(problem, tensors)
    if not problem.depth:
        a, b = a[:, :0], b[:0]  # what is multiplied by 0 is not read
    if problem.beta:
        return torch.addmm(tensors["c"], a, b, beta=problem.beta, alpha=problem.alpha)
    product = torch.mm(a, b)
    return product if problem.alpha == 1 else product.mul_(problem.alpha)
