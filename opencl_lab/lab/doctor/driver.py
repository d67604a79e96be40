"""Load the library of an OpenCL driver in a worker, since it may crash."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

NO_PLATFORM = -1001  # CL_PLATFORM_NOT_FOUND_KHR


def load(library: str, say: Callable[[tuple[bool, str]], None]) -> None:
    """Query a driver's platforms, as an ICD loader does; report whether it works, and details."""
    say(_asked(library))


def _asked(library: str) -> tuple[bool, str]:
    try:
        driver = ctypes.CDLL(library)
    except OSError as error:
        return False, str(error)
    try:
        find = driver.clGetExtensionFunctionAddress
    except AttributeError:
        return False, "it loads, but is not the library of an OpenCL driver"
    find.restype = ctypes.c_void_p
    address = find(b"clIcdGetPlatformIDsKHR")
    if not address:
        return False, "it loads, but has no entry point for the ICD loader"
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(address)
    count = ctypes.c_uint(0)
    status = ask(0, None, ctypes.byref(count))
    if status or not count.value:
        number = f" (error {status})" if status not in (0, NO_PLATFORM) else ""
        return False, f"it loads, but finds no device that it can use{number}"
    return True, f"it loads, platforms: {count.value}"
