"""CLBlast's matrix product on the queue that our calls take, by its C interface.

CLBlast (C. Nugteren, IWOCL 2018) is a BLAS in OpenCL. It has no package for pip that brings the
library itself, so the system's is loaded. It gets the handles of the very queue and buffers that
our kernels work on, since handles of OpenCL are those of the driver, whoever loaded it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import ReferenceUnavailable
from opencl_lab.reference.on_queue import OnQueue

__all__ = ["OnClblast", "no_clblast"]

INSTALL = "not installed; install CLBlast's library (Debian: apt install libclblast-dev)"
FILES = ("libclblast.so", "libclblast.so.1", "libclblast.dylib", "clblast.dll")
ROW_MAJOR = 101
NO, YES = 111, 112  # transposed or not
ROUTINES = {
    "float32": ("CLBlastSgemm", ctypes.c_float),
    "float64": ("CLBlastDgemm", ctypes.c_double),
}
STATUS = {-2042: "the device has no float64", -11: "its kernel does not build for this device"}


@cache
def _library() -> Any:
    """Return the library, or None where it is not found."""
    for name in (ctypes.util.find_library("clblast"), *FILES):
        if name is not None:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return None


def no_clblast() -> str | None:
    """Return why CLBlast cannot be called, or None."""
    return INSTALL if _library() is None else None


@cache
def _routine(dtype: str) -> Any:
    """Return the product of a type; every argument is declared, as sizes have 64 bits."""
    name, scalar = ROUTINES[dtype]
    function = getattr(_library(), name, None)
    if function is None:
        raise ReferenceUnavailable(f"the library that is found has no {name}; install CLBlast anew")
    size, memory = ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    function.argtypes = [
        *[ctypes.c_int] * 3,
        *[size] * 3,
        scalar,
        *memory,
        *memory,
        scalar,
        *memory,
        *[ctypes.c_void_p] * 2,
    ]
    function.restype = ctypes.c_int
    return function


class OnClblast(OnQueue):
    """The queue on a device, and CLBlast's products there.

    Raises
    ------
    ReferenceUnavailable
        Where the library is not found.
    """

    def __init__(self, device: Device):
        if _library() is None:
            raise ReferenceUnavailable(INSTALL)
        super().__init__(device)

    def gemm(
        self, a: Any, b: Any, c: Any, *, alpha: float, beta: float, trans_a: bool, trans_b: bool
    ) -> None:
        """Enqueue ``c = alpha * op(a) @ op(b) + beta * c`` on matrices in C order.

        Parameters
        ----------
        a, b, c : pyopencl.array.Array
            Of float32 or float64; c is written, and read unless beta is 0.

        Raises
        ------
        ReferenceUnavailable
            If CLBlast refuses; it says so by a number.
        """
        m, n = c.shape
        k = a.shape[0] if trans_a else a.shape[1]
        queue = ctypes.c_void_p(self.queue.int_ptr)
        status = _routine(np.dtype(c.dtype).name)(
            ROW_MAJOR,
            YES if trans_a else NO,
            YES if trans_b else NO,
            *(m, n, k, alpha),
            *_memory(a),
            *_memory(b),
            beta,
            *_memory(c),
            ctypes.byref(queue),
            None,
        )
        if status:
            why = STATUS.get(status, "see clblast_c.h")
            raise ReferenceUnavailable(f"CLBlast refuses it with status {status}: {why}")


def _memory(matrix: Any) -> tuple[int, int, int]:
    """Return the buffer of a matrix, where it begins there, and the length of its rows."""
    return matrix.base_data.int_ptr, matrix.offset // matrix.dtype.itemsize, matrix.shape[1]
