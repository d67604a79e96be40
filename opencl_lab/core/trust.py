"""What others could have written is not loaded, listened to or believed.

One rule says whether a path is safe, `danger`; named temporary files are made where it holds,
in `temporary_place`.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

from opencl_lab.core.errors import OclabError
from opencl_lab.core.systems import HAS_OWNERS, user

ROOT = 0
OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
UNKNOWN_USER = Path("/proc/sys/kernel/overflowuid")
"""The file with the owner that is shown for users that a namespace does not map."""
MAPPED_USERS, ALL_USERS = Path("/proc/self/uid_map"), ["0", "0", "4294967295"]
"""The file with the users that this process's namespace maps, and its only line outside of any."""
ADVICE = (
    "deny others write access and clear the folder, or set OCLAB_CACHE_DIR and "
    "POCL_CACHE_DIR to folders that only you can write to"
)

_log = logging.getLogger(__name__)


def own_or_root(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user of this process, or to root."""
    return status.st_uid in (ROOT, user())


def _is_unmapped(owner: int) -> bool:
    """Return whether an owner stands for all users that this container does not know."""
    try:
        lines = MAPPED_USERS.read_text("ascii").splitlines()
        unknown = int(UNKNOWN_USER.read_text("ascii"))
    except (OSError, ValueError):
        return False
    return owner == unknown and [line.split() for line in lines] != [ALL_USERS]


def danger(path: Path, *, around: bool = False) -> str | None:
    """Return why others could write to a file or into a folder, or None if they cannot.

    Links are followed, and parent folders are checked up to the root, as others could replace a
    folder there. A parent that others can write to is safe if it has the sticky bit; `around` says
    that `path` is only a parent of what counts. Below a folder of this user's that others cannot
    enter, folders are safe whatever their mode; but not a file, which may have been opened before
    that folder was closed. A parent may belong to a user that a container does not know, as its
    root then may. Windows has no such modes; a user's folders are private there.

    Raises
    ------
    OSError
        If the path is missing, or cannot be reached.
    """
    path = Path(os.path.realpath(path))
    if not HAS_OWNERS:
        path.stat()  # a missing file is an error everywhere
        return None
    found = None
    for place in (path, *path.parents):
        status, above = place.stat(), around or place != path
        if not own_or_root(status) and not (above and _is_unmapped(status.st_uid)):
            return f"{place} belongs to another user"
        if above and status.st_uid == user() and not status.st_mode & OTHERS_ENTER:
            found = None
        if status.st_mode & OTHERS_WRITE and not (above and status.st_mode & stat.S_ISVTX):
            found = found or f"others can write to {place}"
            if not stat.S_ISDIR(status.st_mode):
                return found
    return found


@cache
def warn(what: str, why: str) -> None:
    """Say once what is not done because of a `danger`."""
    _log.warning("%s, because %s", what, why)


def temporary_place() -> Path:
    """Return a folder where others cannot replace the temporary files that this user makes.

    It is that of `tempfile`, or else another usual one, with a warning.

    Raises
    ------
    OSError
        If no temporary file can be made at all.
    OclabError
        If others could replace it wherever one can be made.
    """
    chosen = tempfile.gettempdir()
    own = os.environ.get("XDG_RUNTIME_DIR") or chosen
    dangers: list[str] = []
    for place in map(Path, (chosen, "/tmp", "/var/tmp", own)):
        if os.access(place, os.W_OK | os.X_OK):
            why = danger(place, around=True)
            if why is None:
                if dangers:
                    warn(f"temporary files are made in {place}", dangers[0])
                return place
            dangers.append(why)
    if not dangers:
        raise FileNotFoundError(errno.ENOENT, f"nothing can be made in {chosen}")
    raise OclabError(
        f"no temporary files can be made safely, because {dangers[0]}; set TMPDIR to a folder "
        "that only you can write to, or let others replace nothing there (chmod +t)"
    )
