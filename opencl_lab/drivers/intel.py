"""Registers Intel's CPU runtime, as pip installs it, with the ICD loader before OpenCL starts.

The loader finds drivers by the ``*.icd`` files of one folder, ``/etc/OpenCL/vendors``, to which
only root can write. The files in Intel's wheel name a path on another machine, and the loader does
not read their folder. So a folder in the cache gets an ICD file for this runtime, and links to all
files that the loader would have read. ``$OPENCL_VENDOR_PATH`` names this folder, also for child
processes. Of the loader's variables, this one comes after a user's ``$OCL_ICD_VENDORS``; and if the
folder is deleted, PyOpenCL's PoCL is still found.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from opencl_lab.drivers import wheel
from opencl_lab.drivers.caches import danger, section_folder, temporary_folder
from opencl_lab.drivers.wheel import DRIVER, OURS, SWITCH, VENDORS

ICD_FILE = "opencl_lab-intel.icd"
ONE_ITEM = "reqd_work_group_size(1, 1, 1)"
MAPS = Path("/proc/self/maps")
ROOM = 1 << 16  # bytes that the disk of the cache must have left

_registered: Path | None = None
_withdrawn: Path | None = None
_in_time = False

_log = logging.getLogger(__name__)


def is_intel_cpu(kind: str, platform_name: str) -> bool:
    """Return whether a device of this kind and platform is Intel's CPU runtime."""
    return kind == "cpu" and platform_name.startswith("Intel")


def chosen(environ: Mapping[str, str]) -> str | None:
    """Return the variable by which a user, or the parent process, chose drivers, or None.

    A folder made by this module that has been deleted since does not count.
    """
    if environ.get("OCL_ICD_VENDORS"):
        return "OCL_ICD_VENDORS"
    folder = Path(environ.get(OURS, ""))
    if environ.get(OURS) and (folder.is_dir() or not _is_ours(folder)):
        return OURS
    return SWITCH if wheel.switched_off(environ) else None


def _mapped(name: str) -> list[Path]:
    """Return the libraries in this process whose file names begin with `name`."""
    with suppress(OSError):
        lines = MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
        paths = [Path("/" + line.partition("/")[2]) for line in lines if name in line]
        return list(dict.fromkeys(path for path in paths if path.name.startswith(name)))
    return []


def loader_library() -> Path | None:
    """Return the ICD loader that an imported pyopencl is linked with; None if unknown.

    If pyopencl has its own loader, other libraries may have loaded the system's loader, too.
    """
    found, package = _mapped("libOpenCL"), getattr(sys.modules.get("pyopencl"), "__file__", None)
    folder = None if package is None else Path(package).resolve().parent
    own = [path for path in found if folder in path.parents]
    return next(iter([*own, *found]), None)


def own_vendors(loader: Path | None) -> Path | None:
    """Return the folder of ICD files that comes with a loader, as in a Conda environment."""
    folder = None if loader is None else loader.parent.parent / VENDORS
    return folder if folder is not None and folder.is_dir() else None


def register(root: Path = Path("/")) -> None:
    """Make Intel's CPU runtime, if pip installed it, known to the ICD loader; call before OpenCL.

    The package calls it when it is imported; discovery calls it again, when the loader is known.
    Nothing is done if the user has chosen drivers by ``$OCL_ICD_VENDORS`` or
    ``$OPENCL_VENDOR_PATH``, if the system has this runtime already, or with ``OCLAB_INTEL=off``.
    """
    global _registered, _in_time
    if chosen(os.environ) is not None:
        return
    os.environ.pop(OURS, None)  # it may name a deleted folder
    found = wheel.library()
    if found is None:
        return
    driver, loader = Path(found), loader_library()
    folders = [root / VENDORS, own_vendors(loader)]
    others = [file for folder in folders if folder for file in sorted(folder.glob("*.icd"))]
    if any(_is_installed(file) for file in others):
        return
    with suppress(OSError):  # no place for the files: other drivers remain
        folder = str(_vendors(driver, others))
        # In this order, as Ctrl-C in between must not leave a driver that is never withdrawn.
        _registered, _in_time = driver, loader is None
        os.environ[OURS] = folder


def withdraw_unless_loaded() -> None:
    """Undo a registration that came too late or failed; call when OpenCL has started.

    Child processes, which get devices by number, must find the same devices.
    """
    global _registered, _withdrawn
    if _registered is None or not MAPS.exists():
        return
    if not _mapped(_registered.name):
        os.environ.pop(OURS, None)
        os.environ[SWITCH] = "off"
        _withdrawn = _registered
    _registered = None


def was_withdrawn() -> bool:
    """Return whether `withdraw_unless_loaded` has undone the registration in this process."""
    return _withdrawn is not None


def why_withdrawn() -> str:
    """Return why `withdraw_unless_loaded` did so, to end a sentence with; "" if it did not."""
    if _withdrawn is None:
        return ""
    if _in_time:
        return f"; Intel's CPU runtime ({_withdrawn}) does not load: `oclab doctor` says why"
    return (
        f"; Intel's CPU runtime is installed ({_withdrawn}), but OpenCL was started before "
        "opencl_lab could register it: call opencl_lab.devices() before anything of pyopencl"
    )


def check_switch() -> None:
    """Warn if the value of ``$OCLAB_INTEL`` is unknown."""
    word = os.environ.get(SWITCH, "")
    if word.strip().lower() not in (*wheel.ON, *wheel.OFF):
        _log.warning("%s=%s is ignored; set it to off or on (the default)", SWITCH, word)


def adapted(text: str) -> str:
    """Return a program in which kernels with groups of one item are not vectorised.

    The compiler would vectorise every kernel across the items of a group. With one item, that code
    never runs, but compiling it takes most of the build time.
    """
    return text.replace(ONE_ITEM, f"{ONE_ITEM}, intel_vec_len_hint(1)")


def _is_ours(folder: Path) -> bool:
    return re.fullmatch(r"drivers-[0-9a-f]{20}", folder.name) is not None


def _is_installed(file: Path) -> bool:
    """Return whether an ICD file names an existing CPU driver of Intel's."""
    with suppress(OSError):
        named = file.read_text(encoding="utf-8", errors="replace").split("\n")[0].strip()
        absent = "/" in named and not Path(named).exists()
        return Path(named).name.startswith(DRIVER) and not absent
    return False


def _vendors(driver: Path, others: list[Path]) -> Path:
    """Return a folder with an ICD file for a driver and links to other such files."""
    links = {f"{index:02}-{file.name}": str(file) for index, file in enumerate(others)}
    content = "\n".join([str(driver), *links.values()])
    name = f"drivers-{hashlib.sha256(os.fsencode(content)).hexdigest()[:20]}"
    folder = section_folder("icd", ROOM) / name
    if not _is_intact(folder, driver, links):
        exposed = _exposed(folder)
        _remove(folder)
        _make(folder, driver, links)
        if exposed is not None:
            _log.warning("%s has been made anew, because %s", folder, exposed)
    if _is_intact(folder, driver, links):
        return folder
    place = temporary_folder(folder)
    _log.warning("drivers are read from %s, because %s cannot be replaced", place, folder)
    _make(place / name, driver, links)
    return place / name


def _exposed(folder: Path) -> str | None:
    """Return why others could change such a folder or its file, or None."""
    for path in (folder, folder / ICD_FILE):
        with suppress(OSError):
            why = danger(path)
            if why is not None:
                return why
    return None


def _remove(folder: Path) -> None:
    """Remove what is in the place of such a folder, if it is the user's, atomically."""
    with suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=".drivers-", dir=folder.parent))
        with suppress(OSError):
            folder.rename(aside / folder.name)
        shutil.rmtree(aside, ignore_errors=True)


def _make(folder: Path, driver: Path, links: Mapping[str, str]) -> None:
    """Make such a folder atomically; another process may do the same."""
    new = Path(tempfile.mkdtemp(prefix=".drivers-", dir=folder.parent))
    try:
        (new / ICD_FILE).write_bytes(os.fsencode(f"{driver}\n"))
        for name, target in links.items():
            (new / name).symlink_to(target)
        with suppress(FileExistsError, OSError):
            new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _is_intact(folder: Path, driver: Path, links: Mapping[str, str]) -> bool:
    """Return whether a folder holds what `_make` puts there, and others cannot change it."""
    file = folder / ICD_FILE
    try:
        return (
            danger(folder) is None
            and {path.name for path in folder.iterdir()} == {ICD_FILE, *links}
            and not file.is_symlink()
            and danger(file) is None
            and file.read_bytes() == os.fsencode(f"{driver}\n")
            and all(str((folder / name).readlink()) == links[name] for name in links)
        )
    except OSError:
        return False
