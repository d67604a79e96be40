"""Matrix products of other libraries on the host, as references."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.gemm.host.blas import factors, multiply_by_blas
from opencl_lab.ops.gemm.problem import FLOAT32

TF32 = "CUPY_TF32"
"""Environment variable by which CuPy rounds float32 to TF32 in products; read once."""
CHUNK = 1 << 18
"""Number of elements whose error functions are computed together."""


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


def array_product(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the result by NumPy or CuPy, in the precision of the type."""
    if module is np and problem.dtype.itemsize == 2:
        raise ReferenceUnavailable("NumPy multiplies float16 without BLAS")
    tf32 = problem.precision == "tf32"
    if module is not np and problem.dtype == FLOAT32 and tf32 != (os.environ.get(TF32) == "1"):
        raise ReferenceUnavailable(f"CuPy needs {TF32}={int(tf32)} for this precision")
    result = multiply_by_blas(problem, arrays, module=module)
    if problem.activation == "relu":
        result = module.maximum(result, 0, out=result)
    elif problem.activation == "gelu":
        try:
            if module is np:
                erf = importlib.import_module("scipy.special").erf
            else:
                erf = importlib.import_module("cupyx.scipy.special").erf
        except ImportError as error:
            raise ReferenceUnavailable("gelu needs SciPy's erf; pip install scipy") from error
        result = (0.5 * result * (1 + erf(math.sqrt(0.5) * result))).astype(problem.dtype)
    return result


def gelu(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``x (1 + erf(x / sqrt 2)) / 2`` in float64; its limits at infinities."""
    flat = values.reshape(-1)
    result = np.empty_like(flat)
    for first in range(0, flat.size, CHUNK):
        x = flat[first : first + CHUNK]
        erf = np.fromiter(map(math.erf, (x * math.sqrt(0.5)).tolist()), np.float64, x.size)
        with np.errstate(invalid="ignore"):
            result[first : first + CHUNK] = np.where(x == -np.inf, -0.0, 0.5 * x * (1 + erf))
    return result.reshape(values.shape)


def blas_gemm(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Multiply by NumPy's BLAS; the caller limits its threads, see `reference.threads`."""
    with np.errstate(all="ignore"):
        return {"result": array_product(problem, np, inputs)}


def torch_product(problem: Any, torch: Any, tensors: Mapping[str, Any]) -> Any:
    """Return the result for tensors on any device of PyTorch.

    CUDA devices use TF32 only if the precision is ``tf32``. Calls are timed, so that setting is
    changed only if it has another value.
    """
    setting, wanted = torch.backends.cuda.matmul, problem.precision == "tf32"
    before = setting.allow_tf32
    if before == wanted:
        return _torch_product(problem, torch, tensors)
    setting.allow_tf32 = wanted
    try:
        return _torch_product(problem, torch, tensors)
    finally:
        setting.allow_tf32 = before


def _torch_product(problem: Any, torch: Any, tensors: Mapping[str, Any]) -> Any:
    a, b = factors(problem, tensors)
    if not problem.depth:
        a, b = a[..., :0], b[..., :0, :]  # with alpha = 0, factors are not read
    bias = tensors["bias"] if problem.bias else None
    if bias is not None and problem.bias == "row":
        bias = bias[:, None]
    if problem.beta and len(problem.dimensions) < 2:
        add = torch.baddbmm if problem.dimensions else torch.addmm
        ahead = problem.shape[:-2]
        a, b = (matrix.expand(*ahead, *matrix.shape[-2:]) for matrix in (a, b))
        result = add(tensors["c"], a, b, beta=problem.beta, alpha=problem.alpha)
    elif bias is not None and not problem.beta and not problem.dimensions:
        result, bias = torch.addmm(bias, a, b, alpha=problem.alpha), None
    else:
        result = torch.matmul(a, b)
        result = result if problem.alpha == 1 else result.mul_(problem.alpha)
        result = result.add_(tensors["c"], alpha=problem.beta) if problem.beta else result
    result = result if bias is None else result.add_(bias)
    if problem.activation == "relu":
        return result.relu_()
    return torch.nn.functional.gelu(result) if problem.activation else result
