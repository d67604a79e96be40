"""Care for PoCL, so that the OpenCL that pip installs works on every machine.

**Its cache of compiled kernels.** PoCL loads files from it without any check: files of other users
would run, and a damaged file ends the process or gives wrong results, in every run. So a record
beside the files holds the size, times and checksum of each. A file with the recorded size and times
is taken as unchanged, as Git does (the time of the last status change cannot be set). Any other
file is read, and removed unless its checksum is right; PoCL makes it again. Files are recorded a
second after they were built, or at the end of the process. One without a record is taken as it is
only for a minute; it is of a process that has just started, or that was killed at once. If the
record is damaged itself, all files without a right entry are removed. A full disk ends the process,
too, and without a folder that it can write to, PoCL's device disappears or every build fails.

**The linker.** PoCL links every kernel with the system's `ld`, and ends the process if there is
none.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from opencl_lab.core.memory import why_no_room
from opencl_lab.core.paths import free_bytes
from opencl_lab.core.records import read_sealed, write_sealed
from opencl_lab.core.systems import HAS_OWNERS, largest_file
from opencl_lab.core.trust import ADVICE, OTHERS_ENTER, OTHERS_WRITE, own_or_root
from opencl_lab.core.wording import size_text
from opencl_lab.drivers import icd
from opencl_lab.drivers.caches import (
    private_folder,
    section_folder,
    temporary_folder,
    usable_folder,
)
from opencl_lab.drivers.pocl_target import library_target
from opencl_lab.drivers.processes import variables

VARIABLE, LIBRARY = "POCL_CACHE_DIR", "libpocl"

PROGRAM = "[A-P]{2}/[A-P]{30,}"  # the folder of a program, which has a folder for each
KERNEL = r"[A-Za-z_]\w*"  # kernel, which has a folder for each
SIZE = r"[\w-]+"  # size of work-groups
COMPILED = re.compile(rf"{PROGRAM}/(program\.bc|{KERNEL}/{SIZE}/{KERNEL}\.so)")
TOUCHED = "last_accessed"  # a file in the folder of a program, written at each build
FOLDER = re.compile(f"{PROGRAM}(/(?!{TOUCHED}){KERNEL}(/{SIZE})?)?")
RECORD = "checked.json"
PAUSE = 0.1  # seconds, within which another process loads what it has just written
SAME_TIME = 50_000_000  # nanoseconds, the resolution of the clocks of file systems
SOON = 1.0  # seconds after a build, within which its kernels have run
YOUNG = 60.0  # seconds within which a process has recorded what it has built, unless it was killed
ROOM = 16 << 20  # bytes that the disk of a cache should have left at the start
LEAST_ROOM = 4 << 20  # bytes without which nothing is built
FIRST_BYTES = 128 << 20  # bytes of memory that PoCL 3.0 takes to build in a process, at first
LATER_BYTES = 24 << 20  # and then
LEAST_FILE = 1 << 20  # bytes that a file must be able to have; programs have fewer

ENTRY = ("size", "time of the last write", "time of the last change", "checksum")
Record: TypeAlias = dict[str, list[int]]
"""The `ENTRY` of each file."""


_prepared: Path | None = None
"""The folder that this process has given PoCL."""
_has_built = False
"""Whether PoCL has built in this process, and has the memory that its compiler takes once."""


def _folder() -> Path:
    """Return the folder that PoCL uses; of one that others have started, where it has its own."""
    if _prepared is not None:
        return _prepared
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(os.environ.get(VARIABLE) or Path(home, "pocl/kcache"))


@contextmanager
def prepared_cache() -> Iterator[None]:
    """Give PoCL, if it starts in this context, the folder of `prepare_cache`.

    It reads the name once. Where others have started it, or the system does not tell, its folder
    stays.
    """
    global _prepared
    if _prepared is None and (not icd.mapped() or icd.loaded(LIBRARY)):
        yield
        return
    if _prepared is None:
        _prepared = prepare_cache()
        atexit.register(record_built)
    with variables({VARIABLE: str(_prepared)}):
        yield


def prepare_cache() -> Path:
    """Return a usable folder for PoCL's cache without damaged files.

    It is a subfolder, for the processor that PoCL compiles for, of the user's
    ``$POCL_CACHE_DIR``, provided that this user and no one else can write there and its disk has
    room.
    """
    chosen = os.environ.get(VARIABLE)
    folder = usable_folder(Path(chosen), ROOM) if chosen else section_folder("pocl", ROOM)
    target = library_target()
    if target not in (None, folder.name):  # PoCL's cache keys have LLVM's name for the processor
        folder = usable_folder(folder / target, ROOM)
    found = list(_entries(str(folder)))
    planted = _planted(folder, found)
    if planted is not None:
        folder, found = temporary_folder(folder, f"{planted}; {ADVICE}"), []
    stuck = _remove_damaged(folder, found)
    if stuck is not None:
        folder = temporary_folder(folder, f"{stuck} is damaged and cannot be removed")
    return folder


def restore_cache() -> bool:
    """Make PoCL's cache folder, which builds need, if it was deleted; return whether it was."""
    folder = _folder()
    if folder.is_dir():
        return False
    with suppress(OSError):
        private_folder(folder)
    return folder.is_dir()


def no_room(platform_version: str) -> str | None:
    """Return why PoCL cannot build now, or None: without room it would end the process, or hang."""
    folder = _folder()
    if "PoCL" not in platform_version:
        return None
    most = largest_file()
    if most < LEAST_FILE:
        return f"PoCL writes what it compiles, and files may have {size_text(most)} (ulimit -f)"
    lack = why_no_room(LATER_BYTES if _has_built else FIRST_BYTES)
    if lack is not None:
        return f"PoCL's compiler has too little memory: {lack}; raise the limit"
    if free_bytes(folder) >= LEAST_ROOM:
        return None
    return (
        f"PoCL keeps what it compiles in {folder}, whose disk is full: free {size_text(ROOM)} "
        "there, or set POCL_CACHE_DIR to a folder on another disk"
    )


_waiting = threading.Lock()  # held from a build until what was built is recorded


def record_soon() -> None:
    """Record in a second what is built now: a process may be killed, and not come to its end."""
    global _has_built
    _has_built = True
    if _waiting.acquire(blocking=False):
        with suppress(RuntimeError):  # no threads start any more; but then the end is near
            timer = threading.Timer(SOON, _record_later)
            timer.daemon = True
            timer.start()


def _record_later() -> None:
    _waiting.release()
    if record_built():  # there may be more to come
        record_soon()


def record_built() -> bool:
    """Record what PoCL has compiled and loaded in this process; return whether that was new."""
    if _prepared is None:
        return False
    folder, new = _prepared, {}
    begin = f"{folder}/"
    with suppress(OSError):
        loaded = {file.partition(begin)[2] for file in icd.mapped()}
        names = {name for name in loaded if COMPILED.fullmatch(name)}
        names |= {str(Path(name).parents[2] / "program.bc") for name in names}
        known = _read(folder) or {}
        for name in names - known.keys():
            with suppress(OSError):
                path = folder / name
                new[name] = [*_stamp(path.lstat()), _checksum(path)]
        if new:
            _write(folder, known | new)
    return bool(new)


def forget_last_built() -> bool:
    """Remove the program that PoCL has built last; return whether that worked.

    Programs that other processes have built at the same moment are removed, too.
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
    if folder == _prepared:
        known = (_read(folder) or {}).items()
        with suppress(OSError):
            _write(folder, {name: entry for name, entry in known if name not in removed})
    return bool(removed)


def _planted(folder: Path, found: Sequence[tuple[str, os.stat_result]]) -> str | None:
    """Return why a folder's files cannot be trusted, or None: others own or can write to them."""
    reached = found and HAS_OWNERS and folder.stat().st_mode & OTHERS_ENTER
    for name, status in found:
        if not own_or_root(status):
            return f"{folder / name} belongs to another user"
        if reached and status.st_mode & OTHERS_WRITE:
            return f"others can write to {folder / name}"
    return None


def _remove_damaged(folder: Path, found: Iterable[tuple[str, os.stat_result]]) -> Path | None:
    """Remove files that PoCL would fail to load or to replace, and record the others.

    Return a file that could not be removed, or None.
    """
    known = _read(folder)
    entries = known or {}
    sound: Record = {}
    suspects = []
    for name, status in found:
        if COMPILED.fullmatch(name):
            entry = entries.get(name)
            if entry is None and known is None:
                pass  # the damaged record may have had it
            elif entry is None or entry[:3] != _stamp(status):
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
            if _stamp(path.lstat()) == _stamp(seen):  # not made again meanwhile
                shutil.rmtree(path) if stat.S_ISDIR(seen.st_mode) else path.unlink()
        except FileNotFoundError:  # another process has removed it, too
            pass
        except OSError:
            stuck = path
    if sound != known:
        with suppress(OSError):
            _write(folder, sound)
    return stuck


def _looked_at(path: Path, status: os.stat_result, entry: list[int] | None) -> list[int] | None:
    """Return the record of a file that is unchanged, or None.

    Of a file without a record that is not known, and it must be new.
    """
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        checksum = _checksum(path)
        if entry is None:
            sound = time.time() - status.st_mtime < YOUNG
        else:
            sound = (entry[0], entry[3]) == (status.st_size, checksum)
    except OSError:
        return None
    return [*_stamp(status), checksum] if sound else None


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _checksum(path: Path) -> int:
    return zlib.crc32(path.read_bytes())


def _write(folder: Path, record: Record) -> None:
    write_sealed(folder / RECORD, {"files": record})


def _read(folder: Path) -> Record | None:
    """Return the record, which is empty if there is none, or None if it is damaged."""
    path = folder / RECORD
    document = read_sealed(dict[str, Record], path)
    if document is None:
        return None if path.exists() else {}
    return document.get("files", {})


def _entries(folder: str, place: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield folders, links and files that PoCL loads below a folder, with sizes and times.

    Other files are included if they are where PoCL has folders.
    """
    with suppress(OSError), os.scandir(f"{folder}/{place}") as entries:  # another process clears it
        for entry in entries:
            name = place + entry.name
            inner = entry.is_dir(follow_symlinks=False)
            loaded = name.endswith((".so", ".bc")) or FOLDER.fullmatch(name)
            if inner or loaded or entry.is_symlink():
                with suppress(OSError):  # or replace this one
                    yield name, entry.stat(follow_symlinks=False)
            if inner:
                yield from _entries(folder, f"{name}/")


def linker_missing(platform_version: str) -> str | None:
    """Return what a PoCL that links with the system's `ld` lacks, or None.

    Releases after 5 may have their own linker.
    """
    release = re.search(r"PoCL (\d+)", platform_version)
    if release is None or int(release[1]) > 5 or shutil.which("ld"):
        return None
    return "PoCL links kernels with `ld`, which is not on the PATH: apt install binutils"
