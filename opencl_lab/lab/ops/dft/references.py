"""Fourier transforms of other libraries as references, and as users call them, ours too."""

from __future__ import annotations

import atexit
import importlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from opencl_lab import fft
from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays, imported
from opencl_lab.lab.reference.on_queue import OnQueue
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.fft.fast import FftAlgorithm
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.problem import NORMS, DftProblem, scale_of

AXIS = 1
"""Signals are batch x n x inner."""


def _function(problem: DftProblem, module: Any) -> Callable[..., Any]:
    """Return the transform of NumPy, SciPy, PyTorch, CuPy or `opencl_lab.fft`."""
    direction = "i" if problem.inverse else ""
    name = {"c2c": f"{direction}fft", "r2c": "rfft", "c2r": "irfft"}[problem.kind]
    function: Callable[..., Any] = getattr(module, name)
    return function


def _norm(problem: DftProblem) -> str | None:
    """Return the norm with the scale of the problem, or None."""
    scales = {norm: scale_of(problem.n, norm, problem.inverse) for norm in NORMS}
    return next((norm for norm, scale in scales.items() if scale == problem.scale), None)


def _transformed(problem: DftProblem, module: Any, signal: Any, **options: Any) -> Any:
    """Transform by a library in the norm of the problem; another scale is a factor."""
    unscaled, norm = "forward" if problem.inverse else "backward", _norm(problem)
    found = _function(problem, module)(signal, problem.n, AXIS, norm or unscaled, **options)
    return found if norm else found * problem.scale


# --- references on the host


def _readable(inputs: Arrays) -> np.ndarray[Any, Any]:
    """Return the signal in a type that every library supports; not all support float16."""
    signal = inputs["signal"]
    return signal.astype(np.float32) if signal.dtype == np.float16 else signal


def _on_host(problem: DftProblem, transform: Callable[[], Any]) -> Arrays:
    """Return the spectrum in its shape and type; libraries refuse empty problems."""
    shape, dtype = problem.spectrum
    if not problem.n * problem.count:
        return {"spectrum": np.empty(shape, dtype)}
    with np.errstate(invalid="ignore", over="ignore"):
        return {"spectrum": np.asarray(transform()).astype(dtype, copy=False).reshape(shape)}


def numpy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by NumPy, in the precision of the inputs."""
    return _on_host(problem, lambda: _transformed(problem, np.fft, _readable(inputs)))


def scipy_dft(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Transform by SciPy with `threads` workers."""
    module, signal = importlib.import_module("scipy.fft"), _readable(inputs)
    return _on_host(problem, lambda: _transformed(problem, module, signal, workers=threads))


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

    def transform() -> Any:
        plan = _fftw_plan(problem, threads)
        # pyfftw scales the inverse if this is set, and else the forward transform.
        unscaled = plan(_readable(inputs), normalise_idft=plan.direction == "FFTW_FORWARD")
        return unscaled if problem.scale == 1 else unscaled * problem.scale

    return _on_host(problem, transform)


# --- calls as users make them


def _shaped(problem: DftProblem, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop a trailing dimension of one, with which CuPy would copy signals."""
    signal = arrays["signal"]
    return {"signal": signal.reshape(signal.shape[:2])} if signal.shape[2] == 1 else arrays


def _ours(problem: DftProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall | None:
    """Return the fast transform, or the direct one, which returns whole spectra of real signals."""
    norm = _norm(problem)
    if algorithm in ("auto", FftAlgorithm.name):
        options = {"n": problem.n, "axis": AXIS, "norm": norm}
        if norm is not None or algorithm == "auto":
            return OurCall(_function(problem, fft), (arrays["signal"],), options)
    if norm is None or problem.kind != "c2c":
        return None
    options = {"inverse": problem.inverse, "norm": norm, "axis": AXIS, "algorithm": algorithm}
    return OurCall(dft, (arrays["signal"],), options)


def _over_ranks(problem: DftProblem, arrays: Mapping[str, Any]) -> RanksCall:
    """Return the transform of one row, or of rows, which the ranks share."""
    norm, signal = _norm(problem), arrays["signal"]
    if norm is None or signal.shape[2] != 1:
        raise InvalidProblem("over ranks rows are transformed, with a scale that numpy.fft has")
    whole = signal.reshape(-1) if signal.shape[0] == 1 else signal.reshape(signal.shape[:2])
    length = {"n": problem.n} if problem.kind == "c2r" else {}
    name = f"fft.{_function(problem, fft).__name__}"
    return RanksCall(name, (whole,), {"norm": norm, **length})


def _peer(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transformed(problem, module.fft, arrays["signal"])


def _numpy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    found = _peer(problem, module, arrays)
    return found.astype(problem.spectrum[1], copy=False)  # NumPy 1 transforms in float64 only


def _scipy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    module = importlib.import_module("scipy.fft")
    return _transformed(problem, module, arrays["signal"], workers=-1)


def _torch(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    signal = arrays["signal"]  # of halfs it makes halfs
    return _transformed(problem, module.fft, signal.float() if problem.half else signal)


def torch_on_host(problem: DftProblem, torch: Any, arrays: Mapping[str, Any]) -> Any:
    """Transform tensors on the processor."""
    return _on_host(problem, lambda: _torch(problem, torch, arrays))["spectrum"]


# --- VkFFT, on the OpenCL device that is measured, through pyvkfft


def _flat(problem: DftProblem, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without a trailing dimension of one."""
    return shape[:2] if problem.inner == 1 else shape


def _own_scale(problem: DftProblem) -> float:
    """Return the factor of NumPy's default norm, which is norm 1 in VkFFT."""
    return 1 / problem.n if problem.inverse else 1.0


@lru_cache(4)  # plans hold device memory
def _plan(problem: DftProblem, queue: Any) -> Any:
    """Return VkFFT's transform of a real or complex array, out of place; it compiles kernels."""
    vkfft = importlib.import_module("pyvkfft.opencl")
    return vkfft.VkFFTApp(
        _flat(problem, (problem.batch, problem.n, problem.inner)),
        problem.dtype if problem.kind == "c2c" else problem.real,
        queue,
        axes=(AXIS,),
        inplace=False,
        norm=int(problem.scale == _own_scale(problem)),  # else 0: not scaled
        r2c=problem.kind != "c2c",
    )


atexit.register(_plan.cache_clear)  # plans must be released before the modules that they need


def vkfft_transform(problem: DftProblem, there: OnQueue, arrays: Mapping[str, Any]) -> Any:
    """Transform a signal on the device into a new spectrum on the device.

    VkFFT scales inverse transforms by 1/n or not at all; another factor needs a further launch.
    float16 is refused, for which VkFFT returns spectra in float16, and so are empty signals.
    """
    if problem.half:
        raise ReferenceUnavailable("VkFFT makes no complex64 of float16")
    if not problem.n * problem.count:
        raise ReferenceUnavailable("VkFFT has no empty transforms")
    plan = _plan(problem, there.queue)
    shape, dtype = problem.spectrum
    target = there.new(_flat(problem, shape), dtype)
    source = arrays["signal"]
    (plan.ifft if problem.inverse else plan.fft)(source, target)
    if problem.scale not in (1.0, _own_scale(problem)):
        target *= problem.real.type(problem.scale)
    return target


CALLS = Calls(
    _ours,
    {"numpy": _numpy, "torch": _torch, "cupy": _peer, "scipy": _scipy, "vkfft": vkfft_transform},
    ("signal",),
    algorithm="fft",
    shaped=_shaped,
    over_ranks=_over_ranks,
)
