"""Where pip has put Intel's CPU runtime, and whether it is wanted.

This runs at every ``import opencl_lab``, so that it imports next to nothing,
not even pathlib.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

VENDORS = "etc/OpenCL/vendors"
OURS = "OPENCL_VENDOR_PATH"

DRIVER = "libintelocl.so"
SWITCH = "OCLAB_INTEL"
OFF = ("off", "0", "no", "false")
ON = ("", "on", "1", "yes", "true")


def supported() -> bool:
    """Return whether Intel has a CPU runtime for this machine."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def library() -> str | None:
    """Return the path of the driver's library that the wheel has installed, or None.

    It lies two folders above one that packages are imported from.
    """
    if not supported():
        return None
    packages = [path for path in map(os.path.abspath, sys.path) if _holds_packages(path)]
    folders = [os.path.dirname(os.path.dirname(path)) for path in packages]
    found = (os.path.join(folder, DRIVER) for folder in [*folders, os.path.join(sys.prefix, "lib")])
    return next((os.path.realpath(path) for path in found if os.path.isfile(path)), None)


def _holds_packages(path: str) -> bool:
    return os.path.basename(path) in ("site-packages", "dist-packages")


def switched_off(environ: Mapping[str, str]) -> bool:
    """Return whether ``$OCLAB_INTEL`` leaves the runtime out."""
    return environ.get(SWITCH, "").strip().lower() in OFF


def unknown_word(environ: Mapping[str, str]) -> str | None:
    """Return what ``$OCLAB_INTEL`` is set to if that means nothing, else None."""
    word = environ.get(SWITCH, "")
    return None if word.strip().lower() in (*ON, *OFF) else word


def awaits_registration(environ: Mapping[str, str]) -> bool:
    """Return whether the runtime is here, wanted, and may be registered before pyopencl is loaded.

    Not in a Conda environment, which may have drivers of its own: only the loader tells.
    """
    if environ.get("OCL_ICD_VENDORS") or switched_off(environ):
        return False
    folders = (environ.get(OURS, ""), os.path.join(sys.prefix, "conda-meta"))
    if any(map(os.path.isdir, folders)):
        return False
    return library() is not None
