"""VkFFT as a reference on the device that is measured."""

from __future__ import annotations

import atexit
import importlib
from functools import lru_cache
from typing import Any

import numpy as np

from opencl_lab.errors import ReferenceUnavailable
from opencl_lab.operations.dft.references import AXIS, empty_result, finished, readable
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.runtime.arrays import to_device
from opencl_lab.runtime.session import default_queue

__all__ = ["vkfft_dft"]


@lru_cache(4)  # they hold memory of the device
def _vkfft_plan(problem: Any, device: Any) -> Any:
    """Return VkFFT's transform of a real or complex array, out of place and not scaled."""
    vkfft = importlib.import_module("pyvkfft.opencl")
    shape = (problem.batch, problem.n, problem.inner)
    try:
        return vkfft.VkFFTApp(
            shape[:2] if problem.inner == 1 else shape,
            problem.dtype if problem.kind == "c2c" else problem.real,
            default_queue(device),
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
    empty = empty_result(problem)
    if empty is not None:
        return empty
    plan = _vkfft_plan(problem, device)
    shape, dtype = problem.spectrum
    flat = slice(None, 2 if problem.inner == 1 else 3)
    signal = readable(inputs).reshape(problem.signal[0][flat])
    source = to_device(signal, plan.queue)
    target = to_device(np.empty(shape[flat], dtype), plan.queue)
    (plan.ifft if problem.inverse else plan.fft)(source, target)
    return finished(problem, target.get())
