"""The ICD loader of this process, the drivers that it would load, and platforms that it need not.

A platform that a driver's library gives works without being one of the loader's: calls go where the
platform's own table says. So a driver can be used that others in this process do not see.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

VENDORS, BUNDLED = "etc/OpenCL/vendors", ".libs"
"""The folders of ICD files of the system, and of pyopencl."""
MAPS = Path("/proc/self/maps")
MOST_PLATFORMS = 64
NO_PLATFORM = -1001  # CL_PLATFORM_NOT_FOUND_KHR
TAG, SECOND = 0x4F50454E434C3331, b"clIcdSetPlatformDispatchDataKHR"
"""What the table of a platform begins with, and what a loader has in it, that follow the second
form of this interface. Together they need tables that such a loader makes for its platforms."""
LIST_DEVICES, DEVICE_INFO = 2, 3
"""The places of `clGetDeviceIDs` and `clGetDeviceInfo` in the table."""
ALL, MOST_DEVICES = 0xFFFFFFFF, 64  # types of devices

_LIST_DEVICES = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip
_DEVICE_INFO = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip


def word(address: int) -> int:
    """Return the pointer at an address."""
    return ctypes.c_size_t.from_address(address).value


def mapped() -> list[str]:
    """Return the files that this process has loaded, as far as the system tells."""
    with suppress(OSError):
        lines = MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
        return list(dict.fromkeys("/" + line.partition("/")[2] for line in lines if "/" in line))
    return []


def loaded(name: str) -> list[Path]:
    """Return the libraries in this process whose file names begin with `name`."""
    paths = [Path(file) for file in mapped() if name in file]
    return [path for path in paths if path.name.startswith(name)]


def loader_library() -> Path | None:
    """Return the ICD loader that an imported pyopencl is linked with; None if unknown.

    If pyopencl has its own loader, other libraries may have loaded the system's loader, too.
    """
    found, package = loaded("libOpenCL"), getattr(sys.modules.get("pyopencl"), "__file__", None)
    folder = None if package is None else Path(package).resolve().parent
    own = [path for path in found if folder in path.parents]
    return next(iter([*own, *found]), None)


def folders(loader: Path | None, environ: Mapping[str, str], root: Path = Path("/")) -> list[Path]:
    """Return the folders whose ICD files a loader reads: a chosen one, or the system's and its own.

    Last comes pyopencl's, in any case.
    """
    chosen = environ.get("OCL_ICD_VENDORS") or environ.get("OPENCL_VENDOR_PATH")
    found = [Path(chosen or root / VENDORS)]
    own = None if chosen or loader is None else loader.parent.parent / VENDORS  # Conda's
    if own is not None and own.is_dir():
        found.append(own)
    home = environ.get("PYOPENCL_HOME")  # set by pyopencl
    return list(dict.fromkeys([*found, *([Path(home, BUNDLED)] if home else [])]))


def named_in(file: Path) -> str:
    """Return the library that an ICD file names, which may lie beside it; may be empty."""
    name = file.read_text(encoding="utf-8", errors="replace").split("\n")[0].strip()
    beside = file.parent / name
    return str(beside) if name and "/" not in name and beside.is_file() else name


def pocl_libraries(environ: Mapping[str, str]) -> list[str]:
    """Return PoCL's libraries among those that the loader would load, as far as files name them."""
    chosen = Path(environ.get("OCL_ICD_VENDORS", ""))
    if chosen.is_dir():  # also if it is not set
        read = folders(loader_library(), environ)
        files = [file for folder in read for file in sorted(folder.glob("*.icd"))]
    else:
        files = [chosen] if chosen.suffix == ".icd" else []
    names = [] if files else [str(chosen)]
    for file in files:
        with suppress(OSError):
            names.append(named_in(file))
    return list(dict.fromkeys(name for name in names if "libpocl" in Path(name).name))


def platforms_of(library: str) -> list[int]:
    """Return the addresses of a driver's platforms, as a loader gets them.

    Raises
    ------
    OSError
        If that is no driver's library, or if it finds no device.
    """
    driver = ctypes.CDLL(library)
    try:
        find = driver.clGetExtensionFunctionAddress
    except AttributeError:
        raise OSError("it loads, but is not the library of an OpenCL driver") from None
    find.restype = ctypes.c_void_p
    address = find(b"clIcdGetPlatformIDsKHR")
    if not address:
        raise OSError("it loads, but has no entry point for the ICD loader")
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(address)
    found, count = (ctypes.c_void_p * MOST_PLATFORMS)(), ctypes.c_uint(0)
    status = ask(MOST_PLATFORMS, found, ctypes.byref(count))
    if status or not count.value:
        number = f" (error {status})" if status not in (0, NO_PLATFORM) else ""
        raise OSError(f"it loads, but finds no device that it can use{number}")
    return [address for address in found[: count.value] if address]


def devices_of(platform: int) -> list[int]:
    """Return a platform's devices; the first time that starts the driver's threads."""
    handles, count = (ctypes.c_size_t * MOST_DEVICES)(), ctypes.c_uint(0)
    ask = _LIST_DEVICES(_function(platform, LIST_DEVICES))
    ask(platform, ALL, MOST_DEVICES, handles, ctypes.byref(count))
    return handles[: count.value]


def device_info(platform: int) -> Callable[..., int]:
    """Return the function of a platform that tells the properties of its devices."""
    return _DEVICE_INFO(_function(platform, DEVICE_INFO))


def _function(platform: int, place: int) -> int:
    return word(word(platform) + place * ctypes.sizeof(ctypes.c_void_p))


def works_alone(platform: int) -> bool:
    """Return whether the loader of this process passes calls to a platform that is not its own."""
    if word(word(platform)) != TAG:
        return True
    loader = loader_library()
    return loader is not None and SECOND not in loader.read_bytes()
