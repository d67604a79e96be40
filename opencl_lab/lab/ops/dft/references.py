"""Fourier transforms by other libraries, as references."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from opencl_lab.lab.reference.descriptor import Arrays, imported

AXIS = 1
"""Signals are batch x n x inner."""


def name_of(problem: Any) -> str:
    """Return the name of the transform in NumPy, SciPy and PyTorch."""
    direction = "i" if problem.inverse else ""
    return {"c2c": f"{direction}fft", "r2c": "rfft", "c2r": "irfft"}[problem.kind]


def _readable(inputs: Arrays) -> np.ndarray[Any, Any]:
    """Return the signal in a type that every library supports; not all support float16."""
    signal = inputs["signal"]
    return signal.astype(np.float32) if signal.dtype == np.float16 else signal


def _finished(problem: Any, spectrum: Any) -> Arrays:
    """Scale the unscaled result of a library."""
    shape, dtype = problem.spectrum
    scaled = np.asarray(spectrum)
    if problem.scale != 1:
        scaled = scaled * scaled.real.dtype.type(problem.scale)
    return {"spectrum": scaled.astype(dtype, copy=False).reshape(shape)}


def _empty_result(problem: Any) -> Arrays | None:
    """Return the result of an empty problem, which libraries refuse; else None."""
    shape, dtype = problem.spectrum
    return None if problem.n * problem.count else {"spectrum": np.empty(shape, dtype)}


def _transformed(problem: Any, module: Any, signal: Any, **options: Any) -> Arrays:
    """Transform by a function of a library, and scale the result."""
    empty = _empty_result(problem)
    if empty is not None:
        return empty
    unscaled = "forward" if problem.inverse else "backward"
    function = getattr(module, name_of(problem))
    return _finished(problem, function(signal, problem.n, AXIS, unscaled, **options))


def numpy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by NumPy, in the precision of the inputs."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _transformed(problem, np.fft, _readable(inputs))


def scipy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by SciPy with `threads` workers."""
    module = importlib.import_module("scipy.fft")
    return _transformed(problem, module, _readable(inputs), workers=threads)


def torch_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by PyTorch on the host."""
    torch = importlib.import_module("torch")
    return _transformed(problem, torch.fft, torch.from_numpy(_readable(inputs)))


@cache
def _fftw_plan(problem: Any, threads: int) -> Any:
    """Return a plan with its own arrays, chosen by measurement, outside the timing."""
    fftw = imported("pyfftw")
    shape, dtype = problem.signal
    out_shape, out_dtype = problem.spectrum
    return fftw.FFTW(
        fftw.empty_aligned(shape, problem.real if problem.half else dtype),
        fftw.empty_aligned(out_shape, out_dtype),
        axes=(AXIS,),
        direction="FFTW_BACKWARD" if problem.inverse else "FFTW_FORWARD",
        flags=("FFTW_MEASURE",),
        threads=threads,
        planning_timelimit=20.0,
    )


def fftw_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by FFTW with a measured plan; the first call makes it."""
    empty = _empty_result(problem)
    if empty is not None:
        return empty
    plan = _fftw_plan(problem, threads)
    # pyfftw scales the inverse if this is set, and else the forward transform.
    forward = plan.direction == "FFTW_FORWARD"
    return _finished(problem, plan(_readable(inputs), normalise_idft=forward))
