"""What was measured, on disk at once, so that a run that was stopped can go on.

A journal is a file of lines of JSON. The first says what the records depend on, its identity:

```text
 {"sweep": 2, "operation": "sort", "device": ..., ...}       the head
 {"of": "9f0c...", "size": 1000, "results": [...], ...}       a record, with a digest of it
 {"of": "9f0c...", "size": 5000, "results": [...], ...}
```

A record is one ``write`` at the end of the file, so that several processes can share it, and
begins with its newline: a record that was cut short, by a crash or a full disk, cannot spoil the
next one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A file of records about one thing, read once and then written to.

    The records depend on the `identity`: its first name says what kind of a journal it is, and
    the value which version. What was recorded under another identity is not taken over, and is
    kept until the first record replaces it.

    `records` is what the file had, in the order of writing. `afresh` says why records that are
    there are not taken over, and `trouble` why the last record could not be written.
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
        """Return what kind of a file is there, which is not ours."""
        kind = next(iter(self._head))
        if kind not in head:
            return f"{self.path} is damaged"
        names = sorted(head.keys() | self._head.keys())
        other = [
            n for n in names if [n in head, head.get(n)] != [n in self._head, self._head.get(n)]
        ]
        return f"{self.path} is of another {kind}, which differs in {', '.join(other)}"

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record and see it safely to the disk; trouble is only noted."""
        try:
            if not self._begun:
                self._begin()
            _append(self.path, self._head, {"of": self._mark, **record})
            self.trouble = ""
        except OSError as error:
            self.trouble = f"the journal {self.path} cannot be written: {error.strerror or error}"

    def _begin(self) -> None:
        """Remove what is not taken over; an empty file is one that another run is beginning."""
        there = self.path.exists() and self.path.stat().st_size > 0
        if there and (self.fresh or read_journal(self.path)[0] != self._head):
            self.path.unlink(missing_ok=True)
        self._begun = True

    def remove(self) -> None:
        """Remove the file of a run that has ended; trouble is only noted."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"the journal {self.path} cannot be removed: {error.strerror or error}"


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that tell an identity from others, for the names of files."""
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_journal(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head and the records of a file; lines that are cut or damaged are left out.

    Without a file, or where it has no such line, the head is empty.
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
    """Append a record and see it safely to the disk; an empty file gets `head` first."""
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
