"""Files of records, a line of JSON each, that outlive whoever writes them.

A record is one ``write`` at the end of the file, so that several processes can share it, and
begins with its newline: a record that was cut short, by a crash or a full disk, cannot spoil the
next one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["append_record", "read_records"]


def append_record(path: Path, head: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Append a record and see it safely to the disk; an empty file gets `head` first.

    Raises
    ------
    OSError
        If it cannot be written as a whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        if os.fstat(handle).st_size == 0:
            _append(handle, head)
        _append(handle, record)
        os.fsync(handle)
    finally:
        os.close(handle)


def _append(handle: int, record: Mapping[str, Any]) -> None:
    data = b"\n" + json.dumps(record).encode()
    if os.write(handle, data) < len(data):
        raise OSError("No space left on device")


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; lines that are cut or damaged are left out.

    Without a file there are none.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
