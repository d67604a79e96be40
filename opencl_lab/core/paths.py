"""Where opencl_lab keeps files of its own, and how it writes these and a user's safely."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import size_text

SMALL = 1 << 14  # bytes of a table, about
MOST_LINKS = 40  # to follow, as on Linux
UNLIKE_FILES = "it cannot be replaced as a whole, as it is a device, a pipe or has several names"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cache_dir(*parts: str) -> Path:
    """Return a folder for files that can be rebuilt at any time.

    `$OCLAB_CACHE_DIR` overrides the platform's usual place. The folder is not
    created here; writers do that.
    """
    root = os.environ.get("OCLAB_CACHE_DIR") or platformdirs.user_cache_dir("opencl_lab", False)
    return Path(root, *parts)


def data_dir(*parts: str) -> Path:
    """Return a folder for what a user would miss, such as the results of tuning.

    `$OCLAB_DATA_DIR` overrides the platform's usual place. The folder is not
    created here; writers do that.
    """
    root = os.environ.get("OCLAB_DATA_DIR") or platformdirs.user_data_dir("opencl_lab", False)
    return Path(root, *parts)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep out every other process and thread that asks for the lock of `path`.

    The lock is a file beside `path`, so that `path` itself can be replaced; it
    ends with the process that holds it. It cannot be taken twice: not reentrant.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, whose content becomes that of `path` on success.

    Readers in other processes see the old file or the new one, never a part;
    an error or an interrupt leaves `path` as it was. Symbolic links are followed,
    and a file that is there keeps its owner and its mode.

    What cannot be replaced is written where it is, as any program would: devices,
    pipes, files with several names, and those in folders that cannot be written to.
    Readers may then see a part, but a full disk leaves such a file as it was, too.

    Raises
    ------
    OSError
        If `path` cannot be written to.
    """
    target = _look(path)
    temporary = beside = _beside(target, path.suffix) if target.replaceable else None
    if temporary is None:
        suffix = path.suffix
        with tempfile.NamedTemporaryFile(prefix="oclab-", suffix=suffix, delete=False) as file:
            temporary = Path(file.name)
    try:
        yield temporary
        if beside is not None:
            try:
                beside.replace(target.path)
                return
            except OSError:  # a mount point; or another's file where only that is protected
                if target.status is None:
                    raise
        _copy_into(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


class _Target(NamedTuple):
    """What is to be written to: with links followed, or an open file of this process by number."""

    path: Path
    status: os.stat_result | None = None
    descriptor: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a file on a disk, or none yet."""
        is_file = self.status is None or stat.S_ISREG(self.status.st_mode)
        return self.descriptor is None and is_file

    @property
    def replaceable(self) -> bool:
        """Whether a new file may take its place: it has no other name."""
        return self.is_file and (self.status is None or self.status.st_nlink == 1)


def _look(path: Path) -> _Target:
    """Return what a path stands for; an `OSError` says that it can be written to in no way."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "it is open for reading only")
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
    """Return which of its own open files this process is to write to.

    To open that anew would begin at its start, and cut off what was printed.
    """
    own = {os.path.realpath("/proc/self/fd"), "/dev/fd"}
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _beside(target: _Target, suffix: str) -> Path | None:
    """Make an empty file beside `target`, with the owner and mode of that; None if it cannot be."""
    temporary = target.path.with_name(f".oclab-{secrets.token_hex(8)}{suffix}")
    status = target.status
    try:
        # The umask applies by itself.
        temporary.touch(0o666 if status is None else 0o600, exist_ok=False)
        if status is not None:
            made = temporary.stat()
            if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
                os.chown(temporary, status.st_uid, status.st_gid)
            shutil.copystat(target.path, temporary)  # with access control lists; before any content
    except OSError:
        with suppress(OSError):  # it may never have been made
            temporary.unlink()
        if status is None:
            raise
        return None
    return temporary


def _copy_into(source: Path, target: _Target) -> None:
    """Write the content of a file into one that is there, or that this process has open.

    A regular file keeps its old content where the disk has no room for the new one.
    """
    if target.descriptor is None:
        handle = os.open(target.path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
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
    """Make sure of the room for `size` bytes in an open file, which stays as it is."""
    before = os.fstat(handle).st_size
    if not size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        os.ftruncate(handle, before)
        if error.errno in NO_ROOM:  # and not that the file system cannot do it
            raise


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Say of an error of the system which file of a user's cannot be written."""
    try:
        yield
    except OSError as error:
        raise InvalidProblem(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def write_target(path: Path) -> Iterator[Path]:
    """Do what `replace_file` does for a file that the user has named.

    Raises
    ------
    InvalidProblem
        If it cannot be written.
    """
    with _refused(path), replace_file(path) as temporary:
        yield temporary


def check_target(path: Path, size: int = SMALL, *, whole: bool = False) -> None:
    """Check early, before the work, that `write_target` could put `size` bytes at `path`.

    Parameters
    ----------
    path : Path
    size : int
    whole : bool
        Whether it must be a file that a new one can replace, or none yet.

    Raises
    ------
    InvalidProblem
        If it cannot be written to, or its disk has no room.
    """
    with _refused(path):
        target = _look(path)
        if whole and not target.replaceable:
            raise OSError(errno.EINVAL, UNLIKE_FILES)
        if not target.is_file:
            return  # what is handed on takes no room
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
            free += target.status.st_size  # which is given up first
        if free < size:
            needs, has = size_text(size), size_text(free)
            raise OSError(errno.ENOSPC, f"it needs {needs}, and the disk has {has} left")


def free_bytes(folder: Path) -> float:
    """Return how much may still be written to the disk of a folder; infinity if nobody knows."""
    with suppress(OSError):
        status = os.statvfs(folder)
        if status.f_blocks:  # none is what some network and virtual file systems say
            return status.f_frsize * (status.f_bavail if os.geteuid() else status.f_bfree)
    return math.inf


def write_json(path: Path, document: Any) -> None:
    """Write `document` as JSON to `path` atomically, creating the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1, sort_keys=True), encoding="utf-8")


def read_json(path: Path) -> Any | None:
    """Return the document in `path`, or None when it is missing or corrupt."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
