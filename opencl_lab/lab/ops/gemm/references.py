"""Matrix products of other libraries as references, and as users call them, ours too."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.ops.gemm.mpi import check_plain
from opencl_lab.lab.reference.clblast import OnClblast
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.gemm.bind import shaped
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.host.blas import factors, multiply_by_blas
from opencl_lab.ops.gemm.problem import FLOAT32, GemmProblem
from opencl_lab.runtime.call import Call

TF32 = "CUPY_TF32"
"""Environment variable by which CuPy rounds float32 to TF32 in products; read once."""
CHUNK = 1 << 18
"""Number of elements whose error functions are computed together."""


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


OPTIONS = ("alpha", "beta", "precision")
CLBLAST_OPTIONS = ("alpha", "beta", "trans_a", "trans_b", "conj_a", "conj_b")


def _word(problem: GemmProblem, name: str) -> bool | str | None:
    """Return the value of ``trans_a`` or ``trans_b`` for a factor; None if there is none."""
    transposed = getattr(problem, f"trans_{name}")
    if getattr(problem, f"conj_{name}"):
        return "C" if transposed else None
    return bool(transposed)


def _ours(problem: GemmProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall | None:
    words = {f"trans_{name}": _word(problem, name) for name in ("a", "b")}
    if None in words.values():
        return None
    found = []
    for place, name in ((1, "a"), (2, "b")):
        ahead = (stack[0] if stack[place] else 1 for stack in problem.dimensions)
        found.append(shaped(arrays[name], (*ahead, *arrays[name].shape[-2:]), Call()))
    options = {"c": arrays.get("c"), **{name: getattr(problem, name) for name in OPTIONS}, **words}
    if problem.bias:
        options["bias"] = arrays["bias"].reshape((-1, 1) if problem.bias == "row" else (-1,))
    options["activation"] = problem.activation or None
    options["algorithm"] = algorithm
    return OurCall(gemm, tuple(found), options)


def _over_ranks(problem: GemmProblem, arrays: Mapping[str, Any]) -> RanksCall:
    call = _ours(problem, arrays, "auto")
    if call is None or problem.batch != 1 or problem.bias or problem.activation:
        raise InvalidProblem("over ranks one product, without bias and activation, is made")
    names = (*OPTIONS, "c", "trans_a", "trans_b")
    return RanksCall("gemm", call.arrays, {name: call.options[name] for name in names})


def _clblast(problem: GemmProblem, there: OnClblast, arrays: Mapping[str, Any]) -> Any:
    """Return a new result; CLBlast overwrites C, so C is copied if it is read."""
    check_plain(problem, "CLBlast", stacks=True, numbers="fc")
    if not (problem.batch and problem.m and problem.n and problem.k):
        raise ReferenceUnavailable("CLBlast does not multiply empty matrices")
    result = there.new(problem.shape, problem.dtype)
    if problem.beta:
        there.copy(arrays["c"], result)
    there.gemm(
        arrays["a"],
        arrays["b"],
        result,
        **{name: getattr(problem, name) for name in CLBLAST_OPTIONS},
    )
    return result


CALLS = Calls(
    _ours,
    {"numpy": array_product, "torch": torch_product, "cupy": array_product, "clblast": _clblast},
    ("a", "b", "c", "bias"),
    over_ranks=_over_ranks,
)
