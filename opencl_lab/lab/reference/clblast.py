"""CLBlast's matrix product on the same queue as our calls, by its C interface.

CLBlast (C. Nugteren, IWOCL 2018) is a BLAS in OpenCL. No pip package contains the library, so the
system's is loaded. It gets the handles of the same queue and buffers that our kernels work on,
since OpenCL handles belong to the driver.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.on_queue import OnQueue

INSTALL = "not installed; install CLBlast's library (Debian: apt install libclblast-dev)"
FILES = ("libclblast.so", "libclblast.so.1", "libclblast.dylib", "clblast.dll")
ROW_MAJOR = 101
NO, YES, CONJUGATED = 111, 112, 113  # transposed or not


class _Complex64(ctypes.Structure):
    """A ``cl_float2``, which is passed like its two components."""

    _fields_ = (("real", ctypes.c_float), ("imag", ctypes.c_float))


class _Complex128(ctypes.Structure):
    """A ``cl_double2``."""

    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))


ROUTINES: dict[str, tuple[str, type[Any]]] = {
    "float32": ("CLBlastSgemm", ctypes.c_float),
    "float64": ("CLBlastDgemm", ctypes.c_double),
    "complex64": ("CLBlastCgemm", _Complex64),
    "complex128": ("CLBlastZgemm", _Complex128),
}
STACKED = "StridedBatched"
"""Suffix of the routines that multiply a stack."""
STATUS = {-2042: "the device has no float64", -11: "its kernel does not build for this device"}


@cache
def _library() -> Any:
    """Return the library; None if it is not found."""
    for name in (ctypes.util.find_library("clblast"), *FILES):
        if name is not None:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return None


def no_clblast() -> str | None:
    """Return why CLBlast cannot be called; None if it can."""
    return INSTALL if _library() is None else None


@cache
def _routine(dtype: str, stacked: bool = False) -> Any:
    """Return the product of a type; argument types are declared, since sizes have 64 bits."""
    name, scalar = ROUTINES[dtype]
    name += STACKED if stacked else ""
    function = getattr(_library(), name, None)
    if function is None:
        raise ReferenceUnavailable(f"the installed library has no {name}; install a newer CLBlast")
    size = ctypes.c_size_t
    memory = (ctypes.c_void_p, *[size] * (3 if stacked else 2))
    function.argtypes = [
        *(*[ctypes.c_int] * 3, *[size] * 3),
        *(scalar, *memory, *memory, scalar, *memory),
        *(*[size] * stacked, *[ctypes.c_void_p] * 2),
    ]
    function.restype = ctypes.c_int
    return function


class OnClblast(OnQueue):
    """The queue on a device, and CLBlast's products on it."""

    def __init__(self, device: Device):
        if _library() is None:
            raise ReferenceUnavailable(INSTALL)
        super().__init__(device)

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any,
        *,
        alpha: complex,
        beta: complex,
        trans_a: bool,
        trans_b: bool,
        conj_a: bool = False,
        conj_b: bool = False,
    ) -> None:
        """Enqueue ``c = alpha * op(a) @ op(b) + beta * c`` on matrices in C order.

        c is not read if beta is 0. If c is a stack of matrices, an a or b of one matrix is used for
        all of them. ReferenceUnavailable is raised with the status if CLBlast refuses.
        """
        m, n = c.shape[-2:]
        k = a.shape[-2] if trans_a else a.shape[-1]
        queue = ctypes.c_void_p(self.queue.int_ptr)
        stacked = c.ndim > 2
        dtype = np.dtype(c.dtype)
        status = _routine(dtype.name, stacked)(
            ROW_MAJOR,
            CONJUGATED if conj_a else YES if trans_a else NO,
            CONJUGATED if conj_b else YES if trans_b else NO,
            *(m, n, k, _scalar(dtype, alpha)),
            *_memory(a, stacked),
            *_memory(b, stacked),
            _scalar(dtype, beta),
            *_memory(c, stacked),
            *((c.shape[0],) if stacked else ()),
            ctypes.byref(queue),
            None,
        )
        if status:
            why = STATUS.get(status, "see clblast_c.h")
            raise ReferenceUnavailable(f"CLBlast refuses it with status {status}: {why}")


def _scalar(dtype: np.dtype[Any], value: complex) -> Any:
    if dtype.kind != "c":
        return value.real
    return ROUTINES[dtype.name][1](value.real, value.imag)


def _memory(matrix: Any, stacked: bool) -> tuple[int, ...]:
    """Return the buffer of a matrix, its offset, and its leading dimension.

    Of a stack, also the stride between matrices.
    """
    begin = matrix.offset // matrix.dtype.itemsize
    step = matrix.shape[-2] * matrix.shape[-1] if matrix.ndim > 2 else 0
    return (matrix.base_data.int_ptr, begin, matrix.shape[-1], *((step,) if stacked else ()))
