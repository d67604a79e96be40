"""The files of tuned configurations: reading, setting damaged ones aside, replacing."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path

from opencl_lab.core.errors import OclabError
from opencl_lab.core.paths import data_dir, locked, write_json
from opencl_lab.tuned.entry import Entry, document, parse

_log = logging.getLogger(__name__)
_said: set[str] = set()

SHIPPED = Path(str(files("opencl_lab.tuned"))) / "data"


def overlay_file(operation: str) -> Path:
    """Return the file of the user's own entries for an operation."""
    return data_dir("tuning", _file_name(operation))


def shipped_file(operation: str) -> Path:
    """Return the file of the package's entries for an operation."""
    return SHIPPED / _file_name(operation)


def _file_name(operation: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", operation) + ".json"


def say_once(text: str) -> None:
    """Log a warning, unless it was logged before."""
    if text not in _said:
        _said.add(text)
        _log.warning(text)


def _read_locked(path: Path) -> list[Entry]:
    """Return the entries of a file whose lock is held; a damaged one is set aside."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
        path.replace(aside)
        say_once(f"{path} is damaged and was set aside as {aside.name}: {error}")
        return []


def read_entries(path: Path, shipped: bool) -> list[Entry]:
    """Return the entries of a file; none, with a warning, if it cannot be used."""
    try:
        return parse(path.read_text(encoding="utf-8"), shipped)
    except FileNotFoundError:
        return []
    except (OSError, OclabError) as error:
        say_once(f"the tuned configurations in {path} are not used: {error}")
        return []
    except ValueError as error:
        if shipped:
            say_once(f"the tuned configurations in {path} are not used: {error}")
            return []
    try:
        with locked(path):  # it may have been replaced meanwhile: read again
            return _read_locked(path)
    except (OSError, OclabError) as error:
        say_once(f"the tuned configurations in {path} are damaged and not used: {error}")
        return []


def update_entries(path: Path, change: Callable[[list[Entry]], Iterable[Entry]]) -> None:
    """Replace the entries of one of the user's files by ``change(entries)``."""
    try:
        with locked(path):
            write_json(path, document(change(_read_locked(path))))
    except OSError as error:
        raise OclabError(f"cannot write {path}: {error.strerror or error}") from error
    except OclabError as error:
        raise OclabError(f"cannot add to {path}: {error}") from error
