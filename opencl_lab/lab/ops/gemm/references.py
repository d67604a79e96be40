"""Matrix products of other libraries on the host, as references."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.gemm.factors import factors

CHUNK = 1 << 18
"""Numbers whose error functions are worked out together."""


def check_plain(problem: Any, name: str, stacks: bool = False, numbers: str = "f") -> None:
    """Check that a product is one that every BLAS has, or a stack of these.

    Parameters
    ----------
    problem : GemmProblem
    name : str
        Who multiplies.
    stacks : bool
        Whether stacks of one dimension will do.
    numbers : str
        Kinds of numbers that will do, of 32 bits or more: ``f`` real, ``c`` complex.

    Raises
    ------
    ReferenceUnavailable
        If it is of another type, has a bias or an activation, or is a stack where `stacks` is not.
    """
    if problem.dtype.kind not in numbers or problem.dtype.itemsize == 2:
        raise ReferenceUnavailable(f"{name} multiplies no {problem.dtype}")
    if problem.bias or problem.activation:
        raise ReferenceUnavailable(f"{name} has neither a bias nor an activation")
    if (problem.conj_a > problem.trans_a) or (problem.conj_b > problem.trans_b):
        raise ReferenceUnavailable(f"{name} takes the conjugates of transposes only")
    if len(problem.dimensions) > (1 if stacks else 0):
        plural = "stacks of one dimension" if stacks else "one pair of matrices"
        raise ReferenceUnavailable(f"{name} multiplies {plural} only")


def array_product(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the result by NumPy or CuPy, whose users write these lines.

    Raises
    ------
    ReferenceUnavailable
        If NumPy has no BLAS for the type, SciPy is not there for the error function, or CuPy
        cannot be told how precisely to multiply.
    """
    if module is not np:
        return _in_precision(*_cupy_setting(problem), partial(_product, problem, module, arrays))
    if problem.dtype.itemsize == 2:
        raise ReferenceUnavailable("NumPy multiplies float16 without BLAS")
    return _product(problem, module, arrays)


def _in_precision(
    get: Callable[[], Any], put: Callable[[Any], object], wanted: Any, multiply: Callable[[], Any]
) -> Any:
    """Return a result that is asked for while a setting of a library is the wanted one.

    Calls are timed, so a setting that is right already is left alone.
    """
    before = get()
    if before == wanted:
        return multiply()
    put(wanted)
    try:
        return multiply()
    finally:
        put(before)


def _torch_setting(problem: Any, torch: Any) -> tuple[Callable[[], Any], Callable[[Any], Any], Any]:
    """Return how PyTorch says whether cuBLAS may use TF32, how it is told, and what is wanted."""
    matmul = torch.backends.cuda.matmul
    put = partial(setattr, matmul, "allow_tf32")
    return partial(getattr, matmul, "allow_tf32"), put, problem.precision == "tf32"


def _cupy_setting(problem: Any) -> tuple[Callable[[], Any], Callable[[Any], Any], Any]:
    """Return the same of CuPy, whose only public word is ``CUPY_TF32`` at its first product."""
    tf32 = problem.precision == "tf32"
    try:
        home: Any = importlib.import_module("cupy._core._routines_linalg")
        get, put = (
            partial(getattr(home, f"{verb}_compute_type"), np.float32) for verb in ("get", "set")
        )
        return get, put, home.COMPUTE_TYPE_TF32 if tf32 else home.COMPUTE_TYPE_DEFAULT
    except (ImportError, AttributeError) as error:
        if tf32:
            raise ReferenceUnavailable("this CuPy cannot be told to use TF32") from error
        return lambda: None, lambda value: None, None


def _product(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the result by the functions that NumPy and CuPy share."""
    scalar = problem.dtype.type
    if problem.depth:
        a, b = factors(problem, arrays)
        result = a @ b
        if problem.alpha != 1:
            result *= scalar(problem.alpha)
    else:
        result = module.zeros(problem.shape, problem.dtype)
    if problem.beta:
        result += scalar(problem.beta) * arrays["c"]
    if problem.bias:
        result += arrays["bias"][:, None] if problem.bias == "row" else arrays["bias"]
    if problem.activation == "relu":
        result = module.maximum(result, 0, out=result)
    elif problem.activation == "gelu":
        erf = _error_function(module)
        result = (0.5 * result * (1 + erf(math.sqrt(0.5) * result))).astype(problem.dtype)
    return result


def _error_function(module: Any) -> Any:
    """Return the error function for arrays of NumPy or CuPy, which is in SciPy or beside it."""
    try:
        if module is np:
            return importlib.import_module("scipy.special").erf
        return importlib.import_module("cupyx.scipy.special").erf
    except ImportError as error:
        raise ReferenceUnavailable("gelu takes SciPy's erf; pip install scipy") from error


def gelu(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``x (1 + erf(x / sqrt 2)) / 2`` in float64, and its limits at the infinities."""
    flat = values.reshape(-1)
    result = np.empty_like(flat)
    for first in range(0, flat.size, CHUNK):
        x = flat[first : first + CHUNK]
        erf = np.fromiter(map(math.erf, (x * math.sqrt(0.5)).tolist()), np.float64, x.size)
        with np.errstate(invalid="ignore"):
            result[first : first + CHUNK] = np.where(x == -np.inf, -0.0, 0.5 * x * (1 + erf))
    return result.reshape(values.shape)


def blas_gemm(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Multiply matrices by the BLAS that NumPy was built with.

    Parameters
    ----------
    problem : GemmProblem
    inputs : dict of numpy.ndarray
        ``a``, ``b``; where beta is not 0 ``c``; and ``bias`` where there is one.
    threads : int
        Not used: whoever calls holds BLAS to them, see `opencl_lab.lab.reference.threads`.
    """
    with np.errstate(all="ignore"):
        return {"result": array_product(problem, np, inputs)}


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
    """Return the result of `torch_gemm` for tensors on any of PyTorch's devices.

    CUDA's devices use TF32 where the precision is ``tf32``, and never else.
    """
    multiply = partial(_torch_product, problem, torch, tensors)
    return _in_precision(*_torch_setting(problem, torch), multiply)


def _torch_product(problem: Any, torch: Any, tensors: Mapping[str, Any]) -> Any:
    a, b = factors(problem, tensors)
    if not problem.depth:
        a, b = a[..., :0], b[..., :0, :]  # what is multiplied by 0 is not read
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
