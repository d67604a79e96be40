"""The FFT as users call it, here and in other libraries."""

from __future__ import annotations

import atexit
import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from opencl_lab import fft
from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.ops.dft.references import AXIS, name_of
from opencl_lab.lab.reference.on_queue import OnQueue
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.fft.fast import FftAlgorithm
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.problem import NORMS, DftProblem, scale_of


def _function(problem: DftProblem, module: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(module, name_of(problem))
    return function


def _shaped(problem: DftProblem, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop a trailing dimension of one, with which CuPy would copy signals."""
    signal = arrays["signal"]
    return {"signal": signal.reshape(signal.shape[:2])} if signal.shape[2] == 1 else arrays


def _norm(problem: DftProblem) -> str | None:
    """Return the norm with the scale of the problem, or None."""
    scales = {norm: scale_of(problem.n, norm, problem.inverse) for norm in NORMS}
    return next((norm for norm, scale in scales.items() if scale == problem.scale), None)


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


def _transform(problem: DftProblem, module: Any, arrays: Mapping[str, Any], **options: Any) -> Any:
    function, norm = _function(problem, module), _norm(problem)
    if norm is None:
        raise ReferenceUnavailable(f"numpy.fft and its like have no norm of scale {problem.scale}")
    return function(arrays["signal"], problem.n, AXIS, norm=norm, **options)


def _peer(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(problem, module.fft, arrays)


def _numpy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    found = _peer(problem, module, arrays)
    return found.astype(problem.spectrum[1], copy=False)  # NumPy 1 transforms in float64 only


def _scipy(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _transform(problem, importlib.import_module("scipy.fft"), arrays, workers=-1)


def _torch(problem: DftProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    signal = arrays["signal"]
    given = {"signal": signal.float() if problem.half else signal}  # of halfs it makes halfs
    return _peer(problem, module, given)


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
