"""Care for PoCL, so that the OpenCL that pip installs works on every machine.

**Its cache of compiled kernels.** PoCL loads what it finds there unseen: what others
have put there would run, and a file cut short ends the process at every run. A full
disk ends it too, and without a folder that it can write to its device disappears or
every build fails.

**The linker.** It links every kernel with the system's `ld` and ends the process
where there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from opencl_lab.caches import (
    ADVICE,
    OTHERS_WRITE,
    own_or_root,
    private_folder,
    section_folder,
    temporary_folder,
    usable_folder,
)
from opencl_lab.paths import cache_dir, free_bytes
from opencl_lab.wording import size_text

__all__ = [
    "linker_missing",
    "no_room",
    "prepare_cache",
    "restore_cache",
]

BITCODE_MAGIC = b"BC\xc0\xde"
WRAPPER_MAGIC = b"\xde\xc0\x17\x0b"
WRAPPER = struct.Struct("<4s3I")  # magic, version, where the bitcode begins, its size
BLOCK = struct.Struct("<2I")  # what kind of block, its length in words
ENTER_SUBBLOCK = 1
ELF_HEADER = 64
WRITING_SECONDS = 10  # a younger file may be incomplete because another process writes it
WRITING_PAUSE = 0.1  # in which a file that is being written grows
ROOM = 16 << 20  # bytes that a cache should have left at first,
LEAST_ROOM = 4 << 20  # and without which nothing is built


def prepare_cache() -> None:
    """Point PoCL to a cache that it can use, without damaged files; call before OpenCL.

    A folder that the user chose by ``$POCL_CACHE_DIR`` is kept if it can be written to,
    by nobody else, and its disk has room. PoCL reads the name once, at its first use.
    """
    chosen = os.environ.get("POCL_CACHE_DIR")
    folder = usable_folder(Path(chosen), ROOM) if chosen else section_folder("pocl", ROOM)
    begin = time.time()
    found = list(_files(str(folder), everything=True))
    planted = _planted(folder, found)
    if planted is not None:
        folder, found = temporary_folder(folder, f"{planted}; {ADVICE}"), []
    os.environ["POCL_CACHE_DIR"] = str(folder)
    _remove_damaged(folder, begin, [item for item in found if stat.S_ISREG(item[1].st_mode)])


def restore_cache() -> bool:
    """Make PoCL's cache folder again, without which it builds nothing; return if it was gone."""
    folder = Path(os.environ.get("POCL_CACHE_DIR") or cache_dir("pocl"))
    if folder.is_dir():
        return False
    with suppress(OSError):
        private_folder(folder)
    return folder.is_dir()


def no_room(platform_version: str) -> str | None:
    """Return why PoCL cannot build now: it ends the process when its cache's disk is full."""
    folder = Path(os.environ.get("POCL_CACHE_DIR") or cache_dir("pocl"))
    if "PoCL" not in platform_version or free_bytes(folder) >= LEAST_ROOM:
        return None
    return (
        f"PoCL keeps what it compiles in {folder}, whose disk is full: free {size_text(ROOM)} "
        "there, or set POCL_CACHE_DIR to a folder on another disk"
    )


def _planted(folder: Path, found: Iterable[tuple[Path, os.stat_result]]) -> str | None:
    """Return what others have put, or can put, into a folder that they cannot write to now."""
    reached = folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    for path, status in found:
        if not own_or_root(status):
            return f"{path} belongs to another user"
        if reached and status.st_mode & OTHERS_WRITE:
            return f"others can write to {path}"
    return None


def _remove_damaged(
    folder: Path, begin: float, files: Iterable[tuple[Path, os.stat_result]]
) -> None:
    """Remove incomplete files that were written since the last call; PoCL makes them again."""
    marker = folder / "checked"
    try:
        last = marker.stat().st_mtime
    except OSError:
        last = -1.0
    suspects = [
        (path, seen) for path, seen in files if seen.st_mtime > last and not _is_whole(path)
    ]
    if suspects:
        time.sleep(WRITING_PAUSE)  # what grows meanwhile is being written by another process
    for path, seen in suspects:
        with suppress(OSError):
            now = path.stat()
            if (now.st_size, now.st_mtime_ns) == (seen.st_size, seen.st_mtime_ns):
                path.unlink()
    with suppress(OSError):
        marker.touch()
        # What was being written this time is looked at the next time.
        os.utime(marker, (begin, begin - WRITING_SECONDS))


def _files(folder: str, everything: bool = False) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the compiled files below a folder and their sizes and times.

    With `everything` also the folders and links that lead to them.
    """
    with suppress(OSError), os.scandir(folder) as entries:  # another process clears it
        for entry in entries:
            inner = entry.is_dir(follow_symlinks=False)
            with suppress(OSError):  # or replaces this one
                if everything and (inner or entry.is_symlink()):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)
                if not inner and (entry.name == "program.bc" or entry.name.endswith(".so")):
                    yield Path(entry.path), entry.stat()
            if inner:
                yield from _files(entry.path, everything)


def _is_whole(path: Path) -> bool:
    """Return whether nothing is missing at the end of a file; True if it cannot be read."""
    try:
        return _is_bitcode(path) if path.name == "program.bc" else _is_shared_library(path)
    except OSError:
        return True


def _is_bitcode(path: Path) -> bool:
    """Return whether the blocks of LLVM bitcode, each with its length, fill the file exactly."""
    with path.open("rb") as file:
        begin, end = 0, os.fstat(file.fileno()).st_size
        header = file.read(WRAPPER.size)
        if header[:4] == WRAPPER_MAGIC and len(header) == WRAPPER.size:
            _, _, begin, size = WRAPPER.unpack(header)
            if begin + size > end:
                return False
            end = begin + size
        file.seek(begin)
        if file.read(len(BITCODE_MAGIC)) != BITCODE_MAGIC:
            return False
        place = begin + len(BITCODE_MAGIC)
        while place + BLOCK.size <= end:
            file.seek(place)
            start, words = BLOCK.unpack(file.read(BLOCK.size))
            if start & 3 != ENTER_SUBBLOCK:
                return False
            place += BLOCK.size + 4 * words
        return place == end


def _is_shared_library(path: Path) -> bool:
    """Return whether an ELF file reaches to the end of its section table, which comes last."""
    with path.open("rb") as file:
        header = file.read(ELF_HEADER)
    if len(header) < ELF_HEADER or header[:4] != b"\x7fELF":
        return False
    (offset,) = struct.unpack_from("=Q", header, 0x28)
    size, count = struct.unpack_from("=HH", header, 0x3A)
    return bool(offset + size * count <= path.stat().st_size)


def linker_missing(platform_version: str) -> str | None:
    """Return what a PoCL that links with the system's `ld` lacks, or None.

    Later releases than 5 can have a linker of their own.
    """
    release = re.search(r"PoCL (\d+)", platform_version)
    if release is None or int(release[1]) > 5 or shutil.which("ld"):
        return None
    return "PoCL links kernels with `ld`, which is not on the PATH: apt install binutils"
