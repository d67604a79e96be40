"""Care for PoCL, so that the OpenCL that pip installs works on every machine.

**Its cache of compiled kernels.** PoCL loads what it finds there unseen: what others have put there
would run, and a damaged file ends the process or computes something else, at every run. So a record
beside the files holds the size, times and checksum of each. A file whose size and times are those
of the record is taken to be what it was, as Git takes it (nobody can set the time of the last
change). Any other is read, and removed unless its checksum is right; PoCL makes it again. A full
disk ends the process too, and without a folder that it can write to its device disappears or every
build fails.

**The linker.** It links every kernel with the system's `ld` and ends the process
where there is none.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from opencl_lab.core.paths import cache_dir, free_bytes, read_json, write_json
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.caches import (
    ADVICE,
    OTHERS_WRITE,
    own_or_root,
    private_folder,
    section_folder,
    temporary_folder,
    usable_folder,
)
from opencl_lab.drivers.pocl_target import library_target

PROGRAM = "[A-P]{2}/[A-P]{30,}"  # the folder of one program, which has one for each
KERNEL = r"[A-Za-z_]\w*"  # kernel, which has one for each
SIZE = r"[\w-]+"  # size of work-groups
COMPILED = re.compile(rf"{PROGRAM}/(program\.bc|{KERNEL}/{SIZE}/{KERNEL}\.so)")
TOUCHED = "last_accessed"  # a file in the folder of a program, written at each build
FOLDER = re.compile(f"{PROGRAM}(/(?!{TOUCHED}){KERNEL}(/{SIZE})?)?")
RECORD = "checked.json"
MAPS = Path("/proc/self/maps")
BITCODE_MAGIC = b"BC\xc0\xde"
WRAPPER_MAGIC = b"\xde\xc0\x17\x0b"
WRAPPER = struct.Struct("<4s3I")  # magic, version, where the bitcode begins, its size
BLOCK = struct.Struct("<2I")  # what kind of block, its length in words
ENTER_SUBBLOCK = 1
ELF_HEADER = 64
PAUSE = 0.1  # seconds, after which another process has loaded what it has just written
SAME_TIME = 50_000_000  # nanoseconds, which the clocks of file systems cannot tell apart
ROOM = 16 << 20  # bytes that a cache should have left at first,
LEAST_ROOM = 4 << 20  # and without which nothing is built

ENTRY = ("size", "time of the last write", "time of the last change", "checksum")
Record: TypeAlias = dict[str, list[int]]
"""The `ENTRY` of each file."""


def _folder() -> Path:
    return Path(os.environ.get("POCL_CACHE_DIR") or cache_dir("pocl"))


def prepare_cache() -> None:
    """Point PoCL to a cache that it can use, without damaged files; call before OpenCL.

    It is a folder for the processor that PoCL compiles for, in the one that the user chose by
    ``$POCL_CACHE_DIR`` if that can be written to, by nobody else, and its disk has room. PoCL
    reads the name once, at its first use.
    """
    chosen = os.environ.get("POCL_CACHE_DIR")
    folder = usable_folder(Path(chosen), ROOM) if chosen else section_folder("pocl", ROOM)
    target = library_target()
    if target not in (None, folder.name):  # PoCL's keys have LLVM's name for the processor instead
        folder = usable_folder(folder / target, ROOM)
    found = list(_entries(str(folder)))
    planted = _planted(folder, found)
    if planted is not None:
        folder, found = temporary_folder(folder, f"{planted}; {ADVICE}"), []
    stuck = _remove_damaged(folder, found)
    if stuck is not None:
        folder = temporary_folder(folder, f"{stuck} is damaged and cannot be removed")
    os.environ["POCL_CACHE_DIR"] = str(folder)
    atexit.unregister(record_built)  # once
    atexit.register(record_built)


def restore_cache() -> bool:
    """Make PoCL's cache folder again, without which it builds nothing; return if it was gone."""
    folder = _folder()
    if folder.is_dir():
        return False
    with suppress(OSError):
        private_folder(folder)
    return folder.is_dir()


def no_room(platform_version: str) -> str | None:
    """Return why PoCL cannot build now: it ends the process when its cache's disk is full."""
    folder = _folder()
    if "PoCL" not in platform_version or free_bytes(folder) >= LEAST_ROOM:
        return None
    return (
        f"PoCL keeps what it compiles in {folder}, whose disk is full: free {size_text(ROOM)} "
        "there, or set POCL_CACHE_DIR to a folder on another disk"
    )


def record_built() -> None:
    """Record what PoCL has compiled and loaded in this process; call at its end."""
    folder = _folder()
    begin = f"{folder}/"
    with suppress(OSError):
        lines = MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
        loaded = {line.partition(begin)[2] for line in lines if begin in line}
        names = {name for name in loaded if COMPILED.fullmatch(name)}
        names |= {str(Path(name).parents[2] / "program.bc") for name in names}
        known, new = _read(folder), {}
        for name in names - known.keys():
            with suppress(OSError):
                path = folder / name
                new[name] = [*_stamp(path.lstat()), _checksum(path)]
        if new:
            write_json(folder / RECORD, known | new)


def forget_last_built() -> bool:
    """Remove the program that PoCL has built last; return whether it could be removed.

    What others have built at the same moment goes with it.
    """
    folder = _folder()
    times = {}
    for path in folder.glob(f"??/*/{TOUCHED}"):
        with suppress(OSError):
            times[path.parent / "program.bc"] = path.stat().st_mtime_ns
    last = max(times.values(), default=0)
    removed = set()
    for path, touched in times.items():
        if last - touched < SAME_TIME:
            with suppress(OSError):
                path.unlink()
                removed.add(str(path.relative_to(folder)))
    kept = {name: entry for name, entry in _read(folder).items() if name not in removed}
    with suppress(OSError):
        write_json(folder / RECORD, kept)
    return bool(removed)


def _planted(folder: Path, found: Iterable[tuple[str, os.stat_result]]) -> str | None:
    """Return what others have put, or can put, into a folder that they cannot write to now."""
    reached = folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    for name, status in found:
        if not own_or_root(status):
            return f"{folder / name} belongs to another user"
        if reached and status.st_mode & OTHERS_WRITE:
            return f"others can write to {folder / name}"
    return None


def _remove_damaged(folder: Path, found: Iterable[tuple[str, os.stat_result]]) -> Path | None:
    """Remove what PoCL would fail to load or to replace, and record what else it has compiled.

    Returns what could not be removed.
    """
    known = _read(folder)
    sound: Record = {}
    suspects = []
    for name, status in found:
        if COMPILED.fullmatch(name):
            entry = known.get(name)
            if entry is None or entry[:3] != _stamp(status):
                entry = _looked_at(folder / name, status, entry)
            if entry is not None:
                sound[name] = entry
                continue
        elif stat.S_ISDIR(status.st_mode) or not FOLDER.fullmatch(name):
            continue
        suspects.append((folder / name, status))
    if suspects:
        time.sleep(PAUSE)
    stuck = None
    for path, seen in suspects:
        try:
            if _stamp(path.lstat()) == _stamp(seen):  # and not made again meanwhile
                shutil.rmtree(path) if stat.S_ISDIR(seen.st_mode) else path.unlink()
        except FileNotFoundError:  # another process removes it, too
            pass
        except OSError:
            stuck = path
    if sound != known:
        with suppress(OSError):
            write_json(folder / RECORD, sound)
    return stuck


def _looked_at(path: Path, status: os.stat_result, entry: list[int] | None) -> list[int] | None:
    """Return the record of a file that is what it was, or is whole if nobody knows; else None."""
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        checksum = _checksum(path)
        if entry is None:
            whole = _is_whole(path)
        else:
            whole = (entry[0], entry[3]) == (status.st_size, checksum)
    except OSError:
        return None
    return [*_stamp(status), checksum] if whole else None


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _checksum(path: Path) -> int:
    return zlib.crc32(path.read_bytes())


def _read(folder: Path) -> Record:
    document = read_json(folder / RECORD)
    if not isinstance(document, dict):
        return {}
    return {
        name: entry
        for name, entry in document.items()
        if isinstance(entry, list) and len(entry) == len(ENTRY)
    }


def _entries(folder: str, place: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is below a folder, with sizes and times: folders, links, what PoCL loads.

    Anything else comes too where PoCL has folders.
    """
    with suppress(OSError), os.scandir(f"{folder}/{place}") as entries:  # another process clears it
        for entry in entries:
            name = place + entry.name
            inner = entry.is_dir(follow_symlinks=False)
            loaded = name.endswith((".so", ".bc")) or FOLDER.fullmatch(name)
            if inner or loaded or entry.is_symlink():
                with suppress(OSError):  # or replaces this one
                    yield name, entry.stat(follow_symlinks=False)
            if inner:
                yield from _entries(folder, f"{name}/")


def _is_whole(path: Path) -> bool:
    """Return whether nothing is missing at the end of a file."""
    return _is_bitcode(path) if path.suffix == ".bc" else _is_shared_library(path)


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
