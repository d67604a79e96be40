"""The FFT as users call it, here and in other libraries."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from opencl_lab import fft
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.reference.peers import Calls, OurCall

__all__ = ["CALLS"]

AXIS = 1  # of batch x n x inner


def _function(problem: DftProblem, module: Any) -> Callable[..., Any]:
    names = {"c2c": ("fft", "ifft"), "r2c": ("rfft",) * 2, "c2r": ("irfft",) * 2}
    function: Callable[..., Any] = getattr(module, names[problem.kind][problem.inverse])
    return function


def _transform(problem: DftProblem, module: Any, arrays: Mapping[str, Any], **options: Any) -> Any:
    return _function(problem, module)(arrays["signal"], problem.n, AXIS, **options)


def _ours(problem: DftProblem, arrays: Mapping[str, Any]) -> OurCall:
    options = {"n": problem.n, "axis": AXIS}
    return OurCall(_function(problem, fft), (arrays["signal"],), options)


def _peer(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(problem, module.fft, arrays)


def _scipy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(problem, importlib.import_module("scipy.fft"), arrays, workers=-1)


CALLS = Calls(
    _ours,
    {**dict.fromkeys(("numpy", "torch", "cupy"), _peer), "scipy": _scipy},
    ("signal",),
    algorithm="fft",
)
