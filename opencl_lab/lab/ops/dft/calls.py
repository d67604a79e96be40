"""The FFT as users call it, here and in other libraries."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from opencl_lab import fft
from opencl_lab.lab.ops.dft.vkfft import vkfft_transform
from opencl_lab.lab.reference.peers import Calls, OurCall
from opencl_lab.ops.fft.fast import FftAlgorithm
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.problem import NORMS, DftProblem, scale_of

AXIS = 1  # of batch x n x inner


def _function(problem: DftProblem, module: Any) -> Callable[..., Any]:
    names = {"c2c": ("fft", "ifft"), "r2c": ("rfft",) * 2, "c2r": ("irfft",) * 2}
    function: Callable[..., Any] = getattr(module, names[problem.kind][problem.inverse])
    return function


def _shaped(problem: DftProblem, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what lies within the axis where that is one: CuPy copies signals then."""
    signal = arrays["signal"]
    return {"signal": signal.reshape(signal.shape[:2])} if signal.shape[2] == 1 else arrays


def _transform(problem: DftProblem, module: Any, arrays: Mapping[str, Any], **options: Any) -> Any:
    return _function(problem, module)(arrays["signal"], problem.n, AXIS, **options)


def _norm(problem: DftProblem) -> str | None:
    """Return the norm that scales as the problem says, or None."""
    scales = {norm: scale_of(problem.n, norm, problem.inverse) for norm in NORMS}
    return next((norm for norm, scale in scales.items() if scale == problem.scale), None)


def _ours(problem: DftProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall | None:
    """Return the fast transform, or the direct one: which gives whole spectra of real signals."""
    norm = _norm(problem)
    if algorithm in ("auto", FftAlgorithm.name):
        options = {"n": problem.n, "axis": AXIS, "norm": norm}
        if norm is not None or algorithm == "auto":
            return OurCall(_function(problem, fft), (arrays["signal"],), options)
    if norm is None or problem.kind != "c2c":
        return None
    options = {"inverse": problem.inverse, "norm": norm, "axis": AXIS, "algorithm": algorithm}
    return OurCall(dft, (arrays["signal"],), options)


def _peer(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(problem, module.fft, arrays, norm=_norm(problem))


def _scipy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(
        problem, importlib.import_module("scipy.fft"), arrays, norm=_norm(problem), workers=-1
    )


def _torch(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    signal = arrays["signal"]
    given = {"signal": signal.float() if problem.half else signal}  # of halfs it makes halfs
    return _peer(problem, module, given)


CALLS = Calls(
    _ours,
    {"numpy": _peer, "torch": _torch, "cupy": _peer, "scipy": _scipy, "vkfft": vkfft_transform},
    ("signal",),
    algorithm="fft",
    shaped=_shaped,
)
