"""A backend of `scipy.fft`: calls run here, or in SciPy if they are not supported.

    with scipy.fft.set_backend(opencl_lab.scipy_backend):
        scipy.fft.fft(x)

    scipy.fft.set_global_backend(opencl_lab.scipy_backend)

It follows the uarray protocol: SciPy calls `__ua_function__` for each of its functions. Supported
are the transforms of `opencl_lab.fft` on NumPy arrays and device arrays of up to double precision,
without a plan: Fourier transforms, Hermitian ones (`hfft` and others), and cosine and sine
transforms.

Calls with host arrays that are not supported go to SciPy's own functions, also with
``only=True``, so that this backend is enough alone, or as the global one. These are `fht` and
`ifht`, `longdouble`, calls with a plan, arguments that SciPy refuses (with its own message), and
all calls of a process that was forked after OpenCL had started, in which drivers do not work.
`calls` counts how many calls ran where. Arrays of another library, which have a namespace of their
own, are left to the next backend, such as one of ``scipy.fft.register_backend``, which SciPy asks
after the global one. For device arrays, wrong arguments raise errors of this library.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from opencl_lab import fft as transforms
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.queues import is_forked
from opencl_lab.runtime.arrays import as_array, is_device_array

__all__ = ["__ua_domain__", "__ua_function__", "calls"]

__ua_domain__ = "numpy.scipy.fft"

REST = ("norm", "overwrite_x", "workers")
ONE_AXIS = ("x", "n", "axis", *REST)
AXES = ("x", "s", "axes", *REST)
COSINE = ("dct", "dst", "idct", "idst")
PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), ONE_AXIS),
    **{
        f"{kind}{dimensions}": AXES
        for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for dimensions in ("2", "n")
    },
    **dict.fromkeys(COSINE, ("x", "type", *ONE_AXIS[1:], "orthogonalize")),
    **{f"{kind}n": ("x", "type", *AXES[1:], "orthogonalize") for kind in COSINE},
}

calls = {"here": 0, "elsewhere": 0}
"""How many calls ran here, and how many in SciPy."""


class _Unsupported(Exception):
    """Raised for calls that are left to SciPy, which runs them or raises its own error."""


def _array(x: Any) -> Any:
    """Return `x` as an array that can be transformed here."""
    array = as_array(x)  # refuses masked arrays, which go to SciPy
    if is_device_array(array):
        return array
    wide = array.dtype.kind not in "biufc" or array.dtype.itemsize > 16 or array.dtype.char == "g"
    if wide or not array.size or is_forked():
        raise _Unsupported
    return array


def _check_workers(workers: Any) -> None:
    """Raise for a `workers` that SciPy may refuse; other values are ignored."""
    if workers is not None:
        number = operator.index(workers)
        if number < 1 and number != -1:
            raise _Unsupported


def _kept(value: Any) -> Any:
    """Return the values of an iterator as a tuple, and anything else unchanged."""
    return tuple(value) if isinstance(value, Iterator) else value


def _check_orthogonalize(x: Any, norm: Any, orthogonalize: Any) -> None:
    """Raise unless it is a bool, and for complex numbers, where SciPy follows the norm."""
    if orthogonalize is None:
        return
    known = isinstance(orthogonalize, (bool, np.bool_))
    if not known or (x.dtype.kind == "c" and bool(orthogonalize) != (norm == "ortho")):
        raise _Unsupported


def _check_axes(ndim: int, s: Any, axes: Any) -> None:
    """Raise for repeated axes and lengths of None, which NumPy allows, and for empty axes."""
    if s is not None and any(n is None for n in s):
        raise _Unsupported
    if axes is not None:
        found = {operator.index(axis) % ndim for axis in axes}
        if len(found) < len(axes) or not found:
            raise _Unsupported


def _here(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run a call in this library."""
    parameters = PARAMETERS.get(name, ())
    values = {**dict(zip(parameters, args, strict=False)), **kwargs}
    plan = values.pop("plan", None)
    if plan is not None or len(args) > len(parameters) or set(values) - set(parameters):
        raise _Unsupported
    x = _array(values.pop("x"))
    _check_workers(values.pop("workers", None))
    values.pop("overwrite_x", None)  # it only allows to use the input's memory
    if not x.ndim:
        raise _Unsupported
    _check_orthogonalize(x, values.get("norm"), values.get("orthogonalize"))
    if "s" in parameters:
        values.setdefault("axes", (-2, -1) if name.endswith("2") else None)
        for key in ("s", "axes"):  # SciPy also takes a single number
            if isinstance(values.get(key), (int, np.integer)):
                values[key] = (int(values[key]),)
        _check_axes(x.ndim, values.get("s"), values["axes"])
    return getattr(transforms, name)(x, **values)


def _by_scipy(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run a call in SciPy's own functions."""
    with importlib.import_module("scipy.fft").set_backend("scipy", only=True):
        return method(*args, **kwargs)


def __ua_function__(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Run a call of `scipy.fft`, here or in SciPy, or return NotImplemented."""
    name = method.__name__
    args = tuple(map(_kept, args))  # iterators may be needed twice: here, then in SciPy
    kwargs = {key: _kept(value) for key, value in kwargs.items()}
    x = args[0] if args else kwargs.get("x")
    on_device = is_device_array(x)
    others = not on_device and not isinstance(x, (np.ndarray, np.generic))
    if others and hasattr(x, "__array_namespace__"):
        calls["elsewhere"] += 1
        return NotImplemented
    try:
        result = _here(name, args, kwargs)
    except (_Unsupported, InvalidProblem, InvalidConfig, TypeError) as error:
        calls["elsewhere"] += 1
        if not on_device:
            return _by_scipy(method, args, kwargs)
        if not isinstance(error, _Unsupported):
            raise
        raise InvalidProblem(
            f"scipy.fft.{name} cannot do this with device arrays; give it a host array, x.get()"
        ) from None
    calls["here"] += 1
    return result
