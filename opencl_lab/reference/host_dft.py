"""Fourier transforms by other libraries, as references."""

from __future__ import annotations

import atexit
import importlib
from functools import cache, lru_cache
from typing import Any

import numpy as np

from opencl_lab.errors import ReferenceUnavailable
from opencl_lab.reference.descriptor import Arrays

__all__ = [
    "cupy_dft",
    "fftw_dft",
    "numpy_dft",
    "scipy_dft",
    "torch_dft",
    "vkfft_dft",
]

AXIS = 1
"""Signals are batch x n x inner."""


def _name(problem: Any) -> str:
    """Return the name that NumPy, SciPy and PyTorch give to such a transform."""
    direction = "i" if problem.inverse else ""
    return {"c2c": f"{direction}fft", "r2c": "rfft", "c2r": "irfft"}[problem.kind]


def _signal(inputs: Arrays) -> np.ndarray[Any, Any]:
    """Return the signal in a type that every library knows: not all of them read halfs."""
    signal = inputs["signal"]
    return signal.astype(np.float32) if signal.dtype == np.float16 else signal


def _finish(problem: Any, spectrum: Any) -> Arrays:
    """Scale the unscaled result of a library."""
    shape, dtype = problem.spectrum
    scaled = np.asarray(spectrum)
    if problem.scale != 1:
        scaled = scaled * scaled.real.dtype.type(problem.scale)
    return {"spectrum": scaled.astype(dtype, copy=False).reshape(shape)}


def _unscaled(problem: Any) -> str:
    """Return the norm under which a library does not scale this direction."""
    return "forward" if problem.inverse else "backward"


def _empty(problem: Any) -> Arrays | None:
    """Return the result where there is nothing to transform, which libraries refuse."""
    shape, dtype = problem.spectrum
    return None if problem.n * problem.count else {"spectrum": np.empty(shape, dtype)}


def numpy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by NumPy, in the precision of the inputs."""
    function = getattr(np.fft, _name(problem))
    with np.errstate(invalid="ignore", over="ignore"):
        return _empty(problem) or _finish(
            problem, function(_signal(inputs), problem.n, AXIS, norm=_unscaled(problem))
        )


def scipy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by SciPy with `threads` workers."""
    function = getattr(importlib.import_module("scipy.fft"), _name(problem))
    return _empty(problem) or _finish(
        problem,
        function(_signal(inputs), problem.n, AXIS, norm=_unscaled(problem), workers=threads),
    )


def torch_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by PyTorch on the host."""
    torch = importlib.import_module("torch")
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    function = getattr(torch.fft, _name(problem))
    return _empty(problem) or _finish(
        problem,
        function(torch.from_numpy(_signal(inputs)), problem.n, AXIS, _unscaled(problem)).numpy(),
    )


@cache
def _fftw_plan(problem: Any, threads: int) -> Any:
    """Plan once, measuring, on arrays of its own; the reference is timed without this."""
    fftw = importlib.import_module("pyfftw")
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
    empty = _empty(problem)
    if empty is not None:
        return empty
    plan = _fftw_plan(problem, threads)
    # pyfftw scales the inverse if this is set, and else the forward transform.
    forward = plan.direction == "FFTW_FORWARD"
    return _finish(problem, plan(_signal(inputs), normalise_idft=forward))


def cupy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by cuFFT, through CuPy, on its CUDA device, from host to host."""
    cupy = importlib.import_module("cupy")
    function = getattr(cupy.fft, _name(problem))
    empty = _empty(problem)
    if empty is not None:
        return empty
    spectrum = function(cupy.asarray(_signal(inputs)), problem.n, AXIS, _unscaled(problem))
    return _finish(problem, cupy.asnumpy(spectrum))


@lru_cache(4)  # they hold memory of the device
def _vkfft_plan(problem: Any, device: Any) -> Any:
    """Return VkFFT's transform of a real or complex array, out of place and not scaled."""
    vkfft = importlib.import_module("pyvkfft.opencl")
    runtime = importlib.import_module("opencl_lab.runtime.session")
    shape = (problem.batch, problem.n, problem.inner)
    try:
        return vkfft.VkFFTApp(
            shape[:2] if problem.inner == 1 else shape,
            problem.dtype if problem.kind == "c2c" else problem.real,
            runtime.default_queue(device),
            axes=(AXIS,),
            inplace=False,
            norm=0,
            r2c=problem.kind != "c2c",
        )
    except RuntimeError as error:
        raise ReferenceUnavailable(f"VkFFT refuses it: {error}") from error


atexit.register(_vkfft_plan.cache_clear)  # plans cannot end after the modules that they need


def vkfft_dft(problem: Any, inputs: Arrays, device: Any) -> Arrays:
    """Transform by VkFFT, through pyvkfft, on the device that is measured, from host to host.

    Its first call compiles kernels.
    """
    empty = _empty(problem)
    if empty is not None:
        return empty
    arrays = importlib.import_module("opencl_lab.runtime.arrays")
    plan = _vkfft_plan(problem, device)
    shape, dtype = problem.spectrum
    flat = slice(None, 2 if problem.inner == 1 else 3)
    signal = _signal(inputs).reshape(problem.signal[0][flat])
    source = arrays.to_device(signal, plan.queue)
    target = arrays.to_device(np.empty(shape[flat], dtype), plan.queue)
    (plan.ifft if problem.inverse else plan.fft)(source, target)
    return _finish(problem, target.get())
