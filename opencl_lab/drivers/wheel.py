"""Where pip has installed Intel's CPU runtime, and whether it is wanted."""

from __future__ import annotations

import os
import sys

DRIVER = "libintelocl.so"
SWITCH = "OCLAB_INTEL"
PACKAGES = ("site-packages", "dist-packages")


def supported() -> bool:
    """Return whether Intel has a CPU runtime for this machine."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def library() -> str | None:
    """Return the path of the driver's library that the wheel has installed, or None.

    Its folder is two levels above one from which packages are imported.
    """
    if not supported():
        return None
    paths = map(os.path.abspath, sys.path)
    packages = [path for path in paths if os.path.basename(path) in PACKAGES]
    folders = [os.path.dirname(os.path.dirname(path)) for path in packages]
    found = (os.path.join(folder, DRIVER) for folder in [*folders, os.path.join(sys.prefix, "lib")])
    return next((os.path.realpath(path) for path in found if os.path.isfile(path)), None)
