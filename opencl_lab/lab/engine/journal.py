"""Journals: results are written to disk at once, so that a stopped run can be resumed.

A journal is a file of lines of JSON. The first line is its identity, all that records depend on:

```text
 {"sweep": 2, "operation": "sort", "device": ..., ...}       the head
 {"of": "9f0c...", "size": 1000, "results": [...], ...}       a record, with a digest of it
 {"of": "9f0c...", "size": 5000, "results": [...], ...}
```

A record is one ``write`` at the end of the file, so that several processes can share it, and
begins with its newline: a record that was truncated, by a crash or a full disk, does not damage
the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A file of records with one identity, which is read once and then appended to.

    The first name in the `identity` is the kind of the journal, and its value the version. Records
    of another identity are not taken over; they stay in the file until the first new record.

    `records` are those of the file, in the order of writing. `afresh` says why existing records are
    not taken over, and `trouble` why the last record could not be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], fresh: bool = False):
        self.path, self.fresh, self.trouble = path, fresh, ""
        self._head = json.loads(json.dumps(identity, default=str))
        self._mark = digest_of(self._head)
        self._begun = False
        head, records = ({}, []) if fresh else read_journal(path)
        # Another run at the same time may have added records of its own.
        mine = [item for item in records if item.pop("of", self._mark) == self._mark]
        self.records = mine if head == self._head else []
        lost = not fresh and head != self._head and os.path.lexists(path)
        self.afresh = self._difference(head) if lost else ""

    def _difference(self, head: Mapping[str, Any]) -> str:
        """Return in words how the existing file differs from this journal."""
        kind = next(iter(self._head))
        if kind not in head:
            return f"{self.path} is damaged"
        names = sorted(head.keys() | self._head.keys())
        other = [
            n for n in names if [n in head, head.get(n)] != [n in self._head, self._head.get(n)]
        ]
        return f"{self.path} is of another {kind}, which differs in {', '.join(other)}"

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record and synchronize the file; errors only set `trouble`."""
        try:
            if not self._begun:
                self._begin()
            _append(self.path, self._head, {"of": self._mark, **record})
            self.trouble = ""
        except OSError as error:
            self.trouble = f"the journal {self.path} cannot be written: {error.strerror or error}"

    def _begin(self) -> None:
        """Remove a file that is not taken over; an empty one was just created by another run."""
        there = self.path.exists() and self.path.stat().st_size > 0
        if there and (self.fresh or read_journal(self.path)[0] != self._head):
            self.path.unlink(missing_ok=True)
        self._begun = True

    def remove(self) -> None:
        """Remove the file of a completed run; errors only set `trouble`."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"the journal {self.path} cannot be removed: {error.strerror or error}"


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a digest of an identity, for file names."""
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_journal(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head and the records of a file; truncated or damaged lines are left out.

    The head is empty if there is no file, or no such line in it.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}, []
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return (found[0], found[1:]) if found else ({}, [])


def _append(path: Path, head: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Append a record and synchronize the file; an empty file gets `head` first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        if os.fstat(handle).st_size == 0:
            _write(handle, head)
        _write(handle, record)
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(handle: int, record: Mapping[str, Any]) -> None:
    data = b"\n" + json.dumps(record).encode()
    if os.write(handle, data) < len(data):
        raise OSError("No space left on device")
