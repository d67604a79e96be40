"""Load the library of an OpenCL driver and say what came of it, as a script: ``driver.py LIBRARY``.

It prints how many platforms the driver has. It runs in a process of its own, because loading
runs foreign code, and imports nothing of the package, so that it starts at once.
"""

import ctypes
import sys

NO_PLATFORM = -1001  # CL_PLATFORM_NOT_FOUND_KHR


def main(library: str) -> int:
    """Ask a driver as an ICD loader does; return the exit status."""
    try:
        driver = ctypes.CDLL(library)
    except OSError as error:
        print(error)
        return 1
    try:
        find = driver.clGetExtensionFunctionAddress
    except AttributeError:
        print("it loads, and is not the library of an OpenCL driver")
        return 1
    find.restype = ctypes.c_void_p
    address = find(b"clIcdGetPlatformIDsKHR")
    if not address:
        print("it loads, and offers nothing to the ICD loader")
        return 1
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(address)
    count = ctypes.c_uint(0)
    status = ask(0, None, ctypes.byref(count))
    if status or not count.value:
        number = f" (error {status})" if status not in (0, NO_PLATFORM) else ""
        print(f"it loads, and finds no device that it can use{number}")
        return 1
    print(f"it loads, platforms: {count.value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
