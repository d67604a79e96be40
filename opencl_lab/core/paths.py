"""Where opencl_lab keeps its files, and how it writes its own and the user's files safely."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.interrupt import released
from opencl_lab.core.systems import file_lock, user
from opencl_lab.core.trust import temporary_place
from opencl_lab.core.wording import size_text

SMALL = 1 << 14  # about the bytes of a table
MOST_SLUG = 120  # characters
MOST_LINKS = 40  # symbolic links to follow, as on Linux
UNLIKE_FILES = "it cannot be replaced as a whole, as it is a device, a pipe or has several names"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

_log = logging.getLogger(__name__)


def cache_dir(*parts: str) -> Path:
    """Return a folder for files that can be made again at any time; writers create it.

    `$OCLAB_CACHE_DIR` overrides the platform's usual place.
    """
    root = os.environ.get("OCLAB_CACHE_DIR") or platformdirs.user_cache_dir("opencl_lab", False)
    return Path(root, *parts)


def data_dir(*parts: str) -> Path:
    """Return a folder for files to keep, such as tuned configurations; see `cache_dir`.

    `$OCLAB_DATA_DIR` overrides the platform's usual place.
    """
    root = os.environ.get("OCLAB_DATA_DIR") or platformdirs.user_data_dir("opencl_lab", False)
    return Path(root, *parts)


def record_name(key: str) -> str:
    """Return the name of a file with what is known about `key`, such as a device."""
    slug = re.sub(r"[^a-z0-9.]+", "-", key.lower()).strip("-.")[:MOST_SLUG]
    return f"{slug}-{zlib.crc32(key.encode()):08x}.json"


def is_record_name(name: str) -> bool:
    """Return whether a file may be named by `record_name`."""
    return re.fullmatch(r"[a-z0-9.-]+-[0-9a-f]{8}\.json", name) is not None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep out every other process and thread that asks for the lock of `path`.

    The lock is a file beside `path`, so that `path` itself can be replaced. It is released when
    the process that holds it ends. It is not reentrant. Where the file system has no locks, as some
    network file systems, a warning says once that two processes may each lose what the other wrote.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("a") as file, ExitStack() as held:
        try:
            held.enter_context(file_lock(file))
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            _warn_of_no_locks(path.parent)
        yield


@cache
def _warn_of_no_locks(folder: Path) -> None:
    _log.warning("%s has no file locks: let one process at a time store its results there", folder)


@contextmanager
def replace_file(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path, whose content becomes that of `path` on success.

    Readers in other processes see the old file or the new one, never something between;
    an error or an interrupt leaves `path` as it was. Symbolic links are followed,
    and an existing file keeps its owner and its mode; of `mode`, that of a new one, the umask
    takes its part.

    What cannot be replaced is written in place: devices, pipes, files with several names, and files
    in folders that cannot be written to. Readers may then see an incomplete file, but a full disk
    leaves such a file as it was, too.
    """
    target = _look(path)
    make = partial(_temporary, target, path.suffix, mode)
    with released(make, lambda made: made[0].unlink(missing_ok=True)) as (temporary, is_beside):
        yield temporary
        if is_beside:
            try:
                temporary.replace(target.path)
                return
            except OSError:  # a mount point, or another user's file in a sticky folder
                if target.status is None:
                    raise
        _copy_into(temporary, target)


class _Target(NamedTuple):
    """A file to write: a path with links followed, or an open file of this process by number."""

    path: Path
    status: os.stat_result | None = None
    descriptor: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, or does not exist yet."""
        is_file = self.status is None or stat.S_ISREG(self.status.st_mode)
        return self.descriptor is None and is_file

    @property
    def replaceable(self) -> bool:
        """Whether a new file may replace it: it has no other name."""
        return self.is_file and (self.status is None or self.status.st_nlink == 1)


def _look(path: Path) -> _Target:
    """Return the target of a path; raise `OSError` if it cannot be written to in any way."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        try:
            os.write(descriptor, b"")
        except OSError as error:
            raise OSError(error.errno, "it is open for reading only") from error
        return _Target(path, descriptor=descriptor)
    target = Path(os.path.realpath(path))
    try:
        status = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _Target(target)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.ENXIO, "it is a socket, which cannot be written to like a file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it may not be changed")
    return _Target(target, status)


def _descriptor(path: Path) -> int | None:
    """Return the number of this process's open file that a path names, or None.

    To open the file again would start at its beginning, and truncate what was printed.
    """
    own = {os.path.realpath("/proc/self/fd"), "/dev/fd"}
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _temporary(target: _Target, suffix: str, mode: int) -> tuple[Path, bool]:
    """Make an empty file; return it, and whether it is beside `target` to replace it."""
    beside = _beside(target, suffix, mode) if target.replaceable else None
    if beside is not None:
        return beside, True
    handle, name = tempfile.mkstemp(suffix, "oclab-", dir=temporary_place())
    os.close(handle)
    return Path(name), False


def _beside(target: _Target, suffix: str, mode: int) -> Path | None:
    """Make an empty file beside `target` with its owner and mode; None if that is impossible."""
    temporary = target.path.with_name(f".oclab-{secrets.token_hex(8)}{suffix}")
    status = target.status
    try:
        # The umask applies by itself.
        temporary.touch(mode if status is None else 0o600, exist_ok=False)
        if status is not None:
            made = temporary.stat()
            same = (made.st_uid, made.st_gid) == (status.st_uid, status.st_gid)
            if not same and hasattr(os, "chown"):
                os.chown(temporary, status.st_uid, status.st_gid)
            shutil.copystat(target.path, temporary)  # with access control lists
    except OSError:
        with suppress(OSError):  # it may never have been made
            temporary.unlink()
        if status is None:
            raise
        return None
    return temporary


def _copy_into(source: Path, target: _Target) -> None:
    """Write the content of a file into an existing one, or one that this process has open.

    A regular file keeps its old content if the disk has no room for the new one.
    """
    if target.descriptor is None:
        handle = os.open(target.path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    else:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        handle = os.dup(target.descriptor)
    with os.fdopen(handle, "wb") as file, source.open("rb") as content:
        size = os.fstat(content.fileno()).st_size
        if target.is_file:
            _reserve(handle, size)
        shutil.copyfileobj(content, file)
        if target.is_file:
            file.truncate(size)


def _reserve(handle: int, size: int) -> None:
    """Reserve disk space for `size` bytes of an open file, without changing its content."""
    before = os.fstat(handle).st_size
    if not size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        os.ftruncate(handle, before)
        if error.errno in NO_ROOM:  # not: the file system does not support it
            raise


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turn an `OSError` into an `InvalidProblem` that names the user's file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _descriptor(path) == 1:
            raise  # the reader of the output has ended, which is no fault
        raise InvalidProblem(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def write_target(path: Path) -> Iterator[Path]:
    """Do as `replace_file` for a user's file; raise `InvalidProblem` if it cannot be written."""
    with _refused(path), replace_file(path) as temporary:
        yield temporary


def check_target(path: Path, size: int = SMALL, *, whole: bool = False) -> None:
    """Check early, before the work, that `write_target` could put `size` bytes at `path`.

    With `whole` it must be a file that can be replaced, or not exist yet. Raise `InvalidProblem` if
    it cannot be written to, or if its disk has no room.
    """
    with _refused(path):
        target = _look(path)
        if whole and not target.replaceable:
            raise OSError(errno.EINVAL, UNLIKE_FILES)
        if not target.is_file:
            return  # a pipe or device needs no disk space
        folder = target.path.parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise OSError(errno.ENOENT, f"the folder {folder} does not exist")
        in_place = not target.replaceable
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            if target.status is None:
                why = f"nothing can be made in the folder {folder} ({error.strerror})"
                raise OSError(error.errno, why) from error
            if whole:
                why = f"the folder {folder} cannot be written to, so nothing can take its place"
                raise OSError(error.errno, why) from error
            in_place = True
        free = free_bytes(folder)
        if in_place and target.status is not None:
            free += target.status.st_size  # which is freed first
        if free < size:
            needs, has = size_text(size), size_text(free)
            raise OSError(errno.ENOSPC, f"it needs {needs}, and the disk has {has} left")


def free_bytes(folder: Path) -> float:
    """Return how many bytes the disk of a folder has free; infinity if that is unknown."""
    with suppress(OSError, AttributeError):  # not every system tells
        if not hasattr(os, "statvfs"):
            return shutil.disk_usage(folder).free
        status = os.statvfs(folder)
        if status.f_blocks:  # 0 on some network and virtual file systems
            return float(status.f_frsize * (status.f_bavail if user() else status.f_bfree))
    return math.inf


def write_json(path: Path, document: Any, mode: int = 0o666) -> None:
    """Write `document` as JSON to `path` atomically, creating the folder; see `replace_file`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path, mode) as temporary:
        temporary.write_text(json.dumps(document, indent=1, sort_keys=True), encoding="utf-8")
