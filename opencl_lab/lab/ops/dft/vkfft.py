"""VkFFT on the OpenCL device that is measured, through pyvkfft."""

from __future__ import annotations

import atexit
import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.on_queue import OnQueue

AXIS = 1  # of batch x n x inner


def _flat(problem: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without what lies within the axis, where that is one."""
    return shape[:2] if problem.inner == 1 else shape


def _own_scale(problem: Any) -> float:
    """Return the factor of NumPy's default norm, which VkFFT knows as 1."""
    return 1 / problem.n if problem.inverse else 1.0


@lru_cache(4)  # they hold memory of the device
def _plan(problem: Any, queue: Any) -> Any:
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


atexit.register(_plan.cache_clear)  # plans cannot end after the modules that they need


def vkfft_transform(problem: Any, there: OnQueue, arrays: Mapping[str, Any]) -> Any:
    """Transform a signal on the device into a new spectrum there.

    VkFFT itself scales inverse transforms by 1/n or not at all; any other factor is a launch more.

    Raises
    ------
    ReferenceUnavailable
        For signals of float16, of which it makes spectra of float16, and empty ones.
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
