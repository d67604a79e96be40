"""Intel's CPU runtime as pip installs it, which the ICD loader does not find.

The loader finds drivers by the ``*.icd`` files of one folder, to which only root can write. So the
library is loaded here, beside the loader, and its devices come after all others. Nobody else in the
process sees them, and no variable is set; it does not matter who started OpenCL, or when.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from opencl_lab.core.systems import OFF
from opencl_lab.drivers.icd import platforms_of, works_alone

DRIVER = "libintelocl.so"
SWITCH = "OCLAB_INTEL"
PACKAGES = ("site-packages", "dist-packages")
ONE_ITEM = "reqd_work_group_size(1, 1, 1)"

_failed: str | None = None


def supported() -> bool:
    """Return whether Intel has a CPU runtime for this machine."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def library() -> str | None:
    """Return the path of the driver's library that the wheel has installed, or None.

    Its folder is two levels above one from which packages are imported.
    """
    if not supported():
        return None
    packages = [path for path in map(Path, sys.path) if path.name in PACKAGES]
    folders = [*(path.absolute().parent.parent for path in packages), Path(sys.prefix, "lib")]
    found = (folder / DRIVER for folder in folders)
    return next((str(path.resolve()) for path in found if _is_file(path)), None)


def _is_file(path: Path) -> bool:
    with suppress(PermissionError):  # a folder of others, which cannot be searched
        return path.is_file()
    return False


def is_intel_cpu(kind: str, platform_name: str) -> bool:
    """Return whether a device of this kind and platform is Intel's CPU runtime."""
    return kind == "cpu" and platform_name.startswith("Intel")


def chosen(environ: Mapping[str, str]) -> str | None:
    """Return the variable by which a user, or the parent process, chose drivers, or None."""
    if environ.get(SWITCH, "").strip().lower() in OFF:
        return SWITCH
    names = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
    return next((name for name in names if environ.get(name)), None)


def platforms() -> list[int]:
    """Return the addresses of the platforms of the runtime that pip installed.

    There are none if the user has chosen drivers by ``$OCL_ICD_VENDORS`` or
    ``$OPENCL_VENDOR_PATH``, or with ``OCLAB_INTEL=off``.
    """
    global _failed
    driver = None if chosen(os.environ) else library()
    if driver is None:
        return []
    try:
        found = [platform for platform in platforms_of(driver) if works_alone(platform)]
    except OSError:
        found = []
    _failed = None if found else driver
    return found


def why_missing() -> str:
    """Return that the runtime is installed and not used, to end a sentence with; else ""."""
    if _failed is None:
        return ""
    return f"; Intel's CPU runtime ({_failed}) does not load: `oclab doctor` says why"


def adapted(text: str) -> str:
    """Return a program in which kernels with groups of one item are not vectorised.

    The compiler would vectorise every kernel across the items of a group. With one item, that code
    never runs, but compiling it takes most of the build time.
    """
    return text.replace(ONE_ITEM, f"{ONE_ITEM}, intel_vec_len_hint(1)")
