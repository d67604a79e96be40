"""Matrix products by the BLAS that NumPy was built with, as `opencl_lab.gemm` defines them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from opencl_lab.drivers.processes import default_threads
from opencl_lab.ops.gemm.factors import factors
from opencl_lab.ops.gemm.problem import GemmProblem

HostArray = np.ndarray[Any, Any]


def lacks_blas(problem: GemmProblem) -> str | None:
    """Return why NumPy's BLAS cannot form a product, or None."""
    if problem.is_integer:
        return "BLAS has no integers"
    if problem.dtype.itemsize == 2:
        return "BLAS has no half precision"
    if problem.activation:
        return "BLAS has no activations"
    return None


def multiply_by_blas(
    problem: GemmProblem, inputs: Mapping[str, HostArray], target: HostArray | None = None
) -> HostArray:
    """Multiply plain host arrays: ``a``, ``b``, and ``c`` and ``bias`` if given.

    `lacks_blas` does not refuse the problem. `target` shares no memory with the inputs.
    """
    number = problem.dtype.type
    result = np.empty(problem.shape, problem.dtype) if target is None else target
    with np.errstate(all="ignore"):
        if problem.depth:
            np.matmul(*factors(problem, inputs), out=result)
            if problem.alpha != 1:
                result *= number(problem.alpha)
        else:
            result[...] = 0  # a and b are not read when k or alpha is 0
        if problem.beta:
            c = inputs["c"]
            result += c if problem.beta == 1 else number(problem.beta) * c
        if problem.bias:
            bias = inputs["bias"]
            result += bias[:, None] if problem.bias == "row" else bias
    return result


@cache
def blas_name() -> str:
    """Return the name and version of NumPy's BLAS, and its number of threads."""
    try:
        control: Any = importlib.import_module("threadpoolctl")
    except ImportError:
        return f"{_built_with()} x{default_threads()}"
    found = [item for item in control.threadpool_info() if item.get("user_api") == "blas"]
    found = [item for item in found if "numpy" in str(item.get("filepath"))] or found
    words = ("internal_api", "version", "architecture")
    names = [
        " ".join([*(str(item.get(word)) for word in words), f"x{item.get('num_threads')}"])
        for item in found
    ]
    return ", ".join(sorted(names)) or f"{_built_with()} x{default_threads()}"


def _built_with() -> str:
    try:
        built: Any = np.show_config(mode="dicts")  # type: ignore[call-overload,func-returns-value,unused-ignore]
        return json.dumps(built["Build Dependencies"]["blas"], sort_keys=True)
    except (TypeError, KeyError):  # of another version
        return f"numpy {np.__version__}"
