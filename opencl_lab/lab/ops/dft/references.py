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
    """Return the name that NumPy, SciPy and PyTorch give to such a transform."""
    direction = "i" if problem.inverse else ""
    return {"c2c": f"{direction}fft", "r2c": "rfft", "c2r": "irfft"}[problem.kind]


def readable(inputs: Arrays) -> np.ndarray[Any, Any]:
    """Return the signal in a type that every library knows: not all of them read halfs."""
    signal = inputs["signal"]
    return signal.astype(np.float32) if signal.dtype == np.float16 else signal


def finished(problem: Any, spectrum: Any) -> Arrays:
    """Scale the unscaled result of a library."""
    shape, dtype = problem.spectrum
    scaled = np.asarray(spectrum)
    if problem.scale != 1:
        scaled = scaled * scaled.real.dtype.type(problem.scale)
    return {"spectrum": scaled.astype(dtype, copy=False).reshape(shape)}


def _unscaled(problem: Any) -> str:
    """Return the norm under which a library does not scale this direction."""
    return "forward" if problem.inverse else "backward"


def empty_result(problem: Any) -> Arrays | None:
    """Return the result where there is nothing to transform, which libraries refuse."""
    shape, dtype = problem.spectrum
    return None if problem.n * problem.count else {"spectrum": np.empty(shape, dtype)}


def numpy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by NumPy, in the precision of the inputs."""
    function = getattr(np.fft, name_of(problem))
    with np.errstate(invalid="ignore", over="ignore"):
        return empty_result(problem) or finished(
            problem, function(readable(inputs), problem.n, AXIS, norm=_unscaled(problem))
        )


def scipy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by SciPy with `threads` workers."""
    function = getattr(importlib.import_module("scipy.fft"), name_of(problem))
    return empty_result(problem) or finished(
        problem,
        function(readable(inputs), problem.n, AXIS, norm=_unscaled(problem), workers=threads),
    )


def torch_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by PyTorch on the host."""
    torch = importlib.import_module("torch")
    function = getattr(torch.fft, name_of(problem))
    return empty_result(problem) or finished(
        problem,
        function(torch.from_numpy(readable(inputs)), problem.n, AXIS, _unscaled(problem)).numpy(),
    )


@cache
def _fftw_plan(problem: Any, threads: int) -> Any:
    """Plan once, measuring, on arrays of its own; the reference is timed without this."""
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
    empty = empty_result(problem)
    if empty is not None:
        return empty
    plan = _fftw_plan(problem, threads)
    # pyfftw scales the inverse if this is set, and else the forward transform.
    forward = plan.direction == "FFTW_FORWARD"
    return finished(problem, plan(readable(inputs), normalise_idft=forward))
