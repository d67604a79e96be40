"""CuPy's functions by NumPy; an array that is not of this library is refused."""

from types import SimpleNamespace

import numpy as np
from numpy import fft as _fft

from cupy._core import _routines_linalg

seen = []
"""The compute type of each product."""


class ndarray(np.ndarray):
    """What is on the device."""

    def __matmul__(self, other):
        seen.append(_routines_linalg.get_compute_type(self.dtype))
        return super().__matmul__(other)


def _there(array):
    if not isinstance(array, ndarray):
        raise TypeError(f"Unsupported type {type(array)}")
    return array


def asarray(array):
    return np.array(array).view(ndarray)


def asnumpy(array):
    return np.array(_there(array))


def zeros(shape, dtype):
    return np.zeros(shape, dtype).view(ndarray)


def maximum(x1, x2, out):
    return np.maximum(_there(x1), x2, out=out)


def sort(a, axis=-1):
    return np.sort(_there(a), axis)


def _transform(name):
    def call(a, n=None, axis=-1, norm=None):
        found = getattr(_fft, name)(np.asarray(_there(a)), n, axis, norm)
        single = a.dtype in (np.float16, np.float32, np.complex64)
        kind = {True: "c8", False: "c16"} if found.dtype.kind == "c" else {True: "f4", False: "f8"}
        return found.astype(kind[single]).view(ndarray)

    return call


fft = SimpleNamespace(**{name: _transform(name) for name in ("fft", "ifft", "rfft", "irfft")})
cuda = SimpleNamespace(
    Device=lambda: SimpleNamespace(synchronize=lambda: None),
    runtime=SimpleNamespace(getDeviceCount=lambda: 1),
)
