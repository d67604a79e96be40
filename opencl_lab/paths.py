"""Where opencl_lab keeps files of its own, and how it writes them safely."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

__all__ = [
    "cache_dir",
    "data_dir",
    "locked",
    "read_json",
    "replace_file",
    "usable_folder",
    "write_json",
]


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


def usable_folder(folder: Path) -> Path:
    """Return `folder`, made where it is missing, or a temporary one if it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return _temporary_folder(folder)
    return folder


@cache
def _temporary_folder(instead_of: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"opencl_lab-{instead_of.name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
    """Yield a temporary path beside `path` and rename it over `path` on success.

    Readers in other processes see the old file or the new one, never a part;
    an error or an interrupt leaves `path` as it was.
    """
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix or ".tmp"
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; give the result what a plain open() would.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


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
