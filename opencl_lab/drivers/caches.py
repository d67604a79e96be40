"""The library's caches: folders that nobody else can write to, and files that may be deleted."""

from __future__ import annotations

import errno
import logging
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from opencl_lab.core.early import at_end
from opencl_lab.core.errors import OclabError
from opencl_lab.core.paths import cache_dir, free_bytes, is_record_name
from opencl_lab.core.systems import HAS_OWNERS
from opencl_lab.core.trust import ADVICE, danger, temporary_place, warn
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.pocl_target import TARGETS

BLOCK = 4096
EVERYBODY = stat.S_IRWXG | stat.S_IRWXO

_log = logging.getLogger(__name__)
_temporary: dict[Path, Path] = {}


# ----------------------------------------------------------------- what is ours


TEMPORARY = r"\.oclab-[0-9a-f]{16}\.\w+"


def _named(path: Path, pattern: str) -> bool:
    return re.fullmatch(pattern, path.name) is not None


def _is_library(path: Path) -> bool:
    digest = "[0-9a-f]{20}"
    files = rf"\w+-{digest}-{digest}\.so|compiler-{digest}\.json|{TEMPORARY}"
    return _named(path, files) or (_named(path, r"\.build-[a-z0-9_]{8}") and path.is_dir())


def _is_binary(path: Path) -> bool:
    return _named(path, rf"[0-9a-f]{{40}}\.(bin|seen|trial)|{TEMPORARY}")


def _is_record(path: Path) -> bool:
    """Return whether a file is about a device, or the lock of one, even if it is damaged."""
    name = path.name.removeprefix(".").removesuffix(".lock")
    return _named(path, TEMPORARY) or is_record_name(name)


def _is_of_pocl(path: Path) -> bool:
    if _named(path, "[A-P]{2}") and path.is_dir():
        return all(_named(item, "[A-P]{30,}") for item in path.iterdir())
    of_ours = r"checked(\.json)?|temp(file|dir)_\w{6}(\.\w+)*|_UNCACHED"  # or PoCL's
    return _named(path, f"{TEMPORARY}|{of_ours}")


SECTIONS: dict[str, Callable[[Path], bool]] = {
    "binaries": _is_binary,
    "c": _is_library,
    "pocl": _is_of_pocl,
    "verdicts": _is_record,
    **dict.fromkeys(("doctor", "hybrid", "selftest"), _is_record),  # of older versions
}
"""The sections of the cache, and how the library's files in them are recognised."""


def sections() -> list[str]:
    """Return the names of the sections that exist."""
    return [name for name in SECTIONS if any(_entries(name))]


def _entries(section: str) -> Iterator[Path]:
    """Yield what the library, or PoCL, has put into a section; links are not followed."""
    for folder in _folders(section):
        for path in sorted(folder.iterdir()):
            if not path.is_symlink() and SECTIONS[section](path):
                yield path


def _folders(section: str) -> list[Path]:
    """Return the folder of a section, and its subfolders for kinds of processors."""
    top = cache_dir(section)
    inner = [top / target for target in TARGETS] if section == "pocl" else []
    return [
        folder
        for folder in (top, *inner)
        if folder.is_dir() and not folder.is_symlink() and not top.is_symlink()
    ]


def section_files(section: str) -> list[Path]:
    """Return the library's files in a section."""
    return [
        file
        for path in _entries(section)
        for file in ([path] if not path.is_dir() else path.rglob("*"))
        if file.is_file()
    ]


def remove_section(section: str) -> None:
    """Delete the library's files in a section, and the folder if it is empty then."""
    for path in list(_entries(section)):
        with suppress(FileNotFoundError):  # another process is clearing it, too
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    for folder in reversed(_folders(section)):
        with suppress(OSError):  # the user's own files stay
            folder.rmdir()


# ------------------------------------------------------------ whom it belongs to


def private_folder(folder: Path) -> None:
    """Make a folder, and missing parents, accessible to its owner only."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)


def make_section(name: str) -> None:
    """Make the folder of a section of the cache; see `private_folder`.

    Raises
    ------
    OSError
        If it cannot be made, or if others could write to it: what is stored there would not be
        believed.
    """
    assert name in SECTIONS
    folder = cache_dir(name)
    private_folder(folder)
    why = danger(folder)
    if why is not None:
        warn(f"nothing is kept in {folder}", f"{why}; {ADVICE}")
        raise PermissionError(errno.EACCES, why)


def usable_folder(folder: Path, room: int) -> Path:
    """Return a folder for compiled code: `folder`, or a temporary one if it cannot be used.

    A missing folder is made, accessible to its owner only. It cannot be used if it cannot be
    written to. With a warning, it is not used if others can write to it, or if its disk has less
    than `room` bytes left and the disk of temporary files has as many.
    """
    why = None
    try:
        private_folder(folder)
        folder = folder.resolve()  # the folder that is checked, even if links change later
        why = danger(folder)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(BLOCK))  # a quota may be used up though the disk has room
    except OSError:
        if why is None:
            return temporary_folder(folder)
    if why is not None:
        return temporary_folder(folder, f"{why}; {ADVICE}")
    free = free_bytes(folder)
    if free < room and _has_temporary_room(room):
        return temporary_folder(folder, f"its disk has {size_text(free)} left")
    return folder


def _has_temporary_room(room: int) -> bool:
    with suppress(OSError, OclabError):  # no temporary file can be made
        return free_bytes(temporary_place()) >= room
    return False


def section_folder(name: str, room: int) -> Path:
    """Return a folder for compiled code: that of a section, or a temporary one."""
    folder = usable_folder(cache_dir(name), room)
    with suppress(OSError):
        if HAS_OWNERS and folder.stat().st_mode & EVERYBODY:  # an older version made it
            folder.chmod(0o700)
    return folder


def temporary_folder(instead_of: Path, why: str = "") -> Path:
    """Return a private folder that is deleted at the end of this process, one per replaced folder.

    A warning says once why it is needed.
    """
    if instead_of not in _temporary:
        if why:
            _log.warning("compiled code is not kept in %s, because %s", instead_of, why)
        try:
            prefix = f"opencl_lab-{instead_of.name}-"
            made = tempfile.mkdtemp(prefix=prefix, dir=temporary_place())
        except OSError as error:
            if not why:  # nothing can be written anywhere: builds will say so, if they need it
                return instead_of
            raise OclabError(
                f"compiled code cannot be kept in {instead_of}, because {why}, and no temporary "
                f"folder can be made: {error.strerror or error}"
            ) from error
        at_end(partial(shutil.rmtree, made, ignore_errors=True))
        _temporary[instead_of] = Path(made).resolve()
    return _temporary[instead_of]
