"""Fourier transforms by the libraries of the host, as references."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from opencl_lab.reference.descriptor import Arrays

__all__ = [
    "fftw_dft",
    "no_fftw",
    "no_scipy",
    "no_torch",
    "numpy_dft",
    "scipy_dft",
    "torch_dft",
]

AXIS = 1
"""Signals are batch x n x inner."""


def _missing(module: str, package: str) -> str | None:
    if find_spec(module) is None:
        return f"{module} is not installed; try: pip install {package}"
    return None


def no_scipy() -> str | None:
    """Return why SciPy cannot serve, or None."""
    return _missing("scipy", "scipy")


def no_fftw() -> str | None:
    """Return why FFTW cannot serve, or None."""
    return _missing("pyfftw", "pyfftw")


def no_torch() -> str | None:
    """Return why PyTorch cannot serve, or None."""
    return _missing("torch", "torch")


def _name(problem: Any) -> str:
    """Return the name that NumPy, SciPy and PyTorch give to such a transform."""
    direction = "i" if problem.inverse else ""
    return {"c2c": f"{direction}fft", "r2c": "rfft", "c2r": "irfft"}[problem.kind]


def _finish(problem: Any, spectrum: Any) -> Arrays:
    """Scale the unscaled result of a library."""
    shape, dtype = problem.spectrum
    scaled = np.asarray(spectrum)
    if problem.scale != 1:
        scaled = scaled * scaled.real.dtype.type(problem.scale)
    return {"spectrum": scaled.astype(dtype, copy=False).reshape(shape)}


def _unscaled(problem: Any) -> str:
    """Return the norm under which a library does not scale this direction."""
    return "forward" if problem.inverse or problem.kind == "c2r" else "backward"


def _empty(problem: Any) -> Arrays | None:
    """Return the result where there is nothing to transform, which libraries refuse."""
    shape, dtype = problem.spectrum
    return None if problem.n * problem.count else {"spectrum": np.empty(shape, dtype)}


def numpy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by NumPy, in the precision of the inputs."""
    function = getattr(np.fft, _name(problem))
    with np.errstate(invalid="ignore", over="ignore"):
        return _empty(problem) or _finish(
            problem, function(inputs["signal"], problem.n, AXIS, norm=_unscaled(problem))
        )


def scipy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by SciPy with `threads` workers."""
    function = getattr(importlib.import_module("scipy.fft"), _name(problem))
    return _empty(problem) or _finish(
        problem,
        function(inputs["signal"], problem.n, AXIS, norm=_unscaled(problem), workers=threads),
    )


def torch_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by PyTorch on the host."""
    torch = importlib.import_module("torch")
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    function = getattr(torch.fft, _name(problem))
    return _empty(problem) or _finish(
        problem,
        function(torch.from_numpy(inputs["signal"]), problem.n, AXIS, _unscaled(problem)).numpy(),
    )


@cache
def _fftw_plan(problem: Any, threads: int) -> Any:
    """Plan once, measuring, on arrays of its own; the reference is timed without this."""
    fftw = importlib.import_module("pyfftw")
    shape, dtype = problem.signal
    out_shape, out_dtype = problem.spectrum
    backward = problem.inverse or problem.kind == "c2r"
    return fftw.FFTW(
        fftw.empty_aligned(shape, dtype),
        fftw.empty_aligned(out_shape, out_dtype),
        axes=(AXIS,),
        direction="FFTW_BACKWARD" if backward else "FFTW_FORWARD",
        flags=("FFTW_MEASURE",),
        threads=threads,
        planning_timelimit=20.0,
    )


def fftw_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by FFTW with a measured plan; the first call makes it."""
    empty = _empty(problem)
    if empty is not None:
        return empty
    plan = _fftw_plan(problem, threads)
    # pyfftw scales the inverse if this is set, and else the forward transform.
    forward = plan.direction == "FFTW_FORWARD"
    return _finish(problem, plan(inputs["signal"], normalise_idft=forward))
