"""A backend of `scipy.fft`: its calls run here, and elsewhere what is not supported.

    with scipy.fft.set_backend(opencl_lab.scipy_backend):
        scipy.fft.fft(x)

This is the uarray protocol: SciPy calls `__ua_function__` for each of its functions, and goes
on to the next backend where that returns NotImplemented. Supported are the transforms of
`opencl_lab.fft` on NumPy arrays and device arrays of up to double precision, without a plan.
SciPy itself computes the others, such as `dct`, `dst`, `fht`, `hfft2` and `hfftn`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opencl_lab import fft as transforms
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.runtime.arrays import is_device_array

__all__ = ["__ua_domain__", "__ua_function__", "calls"]

__ua_domain__ = "numpy.scipy.fft"

ONE_AXIS = ("x", "n", "axis", "norm", "overwrite_x", "workers")
AXES = ("x", "s", "axes", "norm", "overwrite_x", "workers")
PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), ONE_AXIS),
    **{
        f"{kind}{dimensions}": AXES
        for kind in ("fft", "ifft", "rfft", "irfft")
        for dimensions in ("2", "n")
    },
}
IGNORED = ("overwrite_x", "workers")
"""Permission to use the input's memory, and how many threads: no use to a device."""

calls = {"here": 0, "elsewhere": 0}
"""How many calls ran here, and how many were left to the next backend."""


def _supported(x: Any) -> Any:
    """Return `x` as an array, or None if it is left to others."""
    if is_device_array(x):
        return x
    if not isinstance(x, (np.ndarray, list, tuple)):
        return None  # another library's array belongs to that library
    array = np.asarray(x)
    wide = array.dtype.kind not in "biufc" or array.dtype.itemsize > 16 or array.dtype.char == "g"
    return None if wide or not array.size else array


def _run(function: Callable[..., Any], parameters: tuple[str, ...], args: Any, kwargs: Any) -> Any:
    values = dict(zip(parameters, args, strict=False))
    values.update(kwargs)
    if values.pop("plan", None) is not None or len(args) > len(parameters):
        return NotImplemented
    x = _supported(values.pop("x", None))
    if x is None or set(values) - set(parameters):
        return NotImplemented
    for name in IGNORED:
        values.pop(name, None)
    if "s" in parameters:
        values.setdefault("axes", (-2, -1) if function.__name__.endswith("2") else None)
        for name in ("s", "axes"):  # SciPy takes a single number too
            if isinstance(values.get(name), (int, np.integer)):
                values[name] = (int(values[name]),)
    if function.__name__.startswith("r") and x.dtype.kind == "c":
        return NotImplemented
    try:
        return function(x, **values)
    except (InvalidProblem, InvalidConfig, TypeError):
        return NotImplemented  # SciPy says in its own words what is wrong, or can do it


def __ua_function__(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Run one call of `scipy.fft`, or return NotImplemented."""
    parameters = PARAMETERS.get(method.__name__)
    result = NotImplemented
    if parameters is not None:
        result = _run(getattr(transforms, method.__name__), parameters, args, kwargs)
    calls["elsewhere" if result is NotImplemented else "here"] += 1
    return result
