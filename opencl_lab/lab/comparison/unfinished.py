"""Each finished size of a sweep on disk at once, so that a sweep that was stopped can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from opencl_lab.lab.comparison.measure import Measurement
from opencl_lab.lab.comparison.stored import measurement_of
from opencl_lab.lab.record_file import append_record, read_records

__all__ = ["FILE", "Finished", "Unfinished"]

FILE = "unfinished.jsonl"
"""In the folder of the results; a sweep that ends removes it."""
VERSION = 2


@dataclass(frozen=True)
class Finished:
    """One size that was measured: its exit status, its rows, and when."""

    status: int
    rows: list[Measurement]
    date: str


class Unfinished:
    """The finished sizes of a sweep, read once and then written to.

    Parameters
    ----------
    folder : Path
        Of the results.
    identity : mapping
        All that the rows of every size depend on. What was measured otherwise is not taken over.
    fresh : bool
        Begin anew.

    Attributes
    ----------
    afresh : str
        Why finished sizes that are there are not taken over; empty where nothing is lost.
    trouble : str
        Why the last size could not be written; empty if all is well.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], fresh: bool = False):
        self.path = folder / FILE
        self.afresh = self.trouble = ""
        self._head = json.loads(json.dumps({"sweep": VERSION, **identity}, default=str))
        text = json.dumps(self._head, sort_keys=True)
        self._mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._records: dict[int, dict[str, Any]] = {}
        self._begun = self.path.exists() and not fresh
        if self._begun:
            self._read()

    def _read(self) -> None:
        head, *records = read_records(self.path) or [{}]
        if head == self._head:
            # Another sweep at the same time may have added sizes of its own.
            ours = (item for item in records if item.get("of") == self._mark)
            self._records = {item["size"]: item for item in ours if _is_finished(item)}
            return
        self._begun = False
        names = head.keys() | self._head.keys() if "sweep" in head else set()
        other = sorted(name for name in names if head.get(name) != self._head.get(name))
        self.afresh = f"{self.path} is of another sweep" if names else f"{self.path} is damaged"
        if other:
            self.afresh += f", which differs in {', '.join(other)}"
        self.afresh += "; all sizes are measured anew"

    @property
    def goes_on(self) -> bool:
        """Whether the latest results of the folder are those of this sweep, which was stopped."""
        return bool(self._records)

    def take(self, size: int, configs: Sequence[Any], operation: str) -> Finished | None:
        """Return what was measured of a size, if that was with the same kernel parameters.

        Rows of a file that is damaged are measured again.
        """
        record = self._records.get(size)
        if record is None or record["configs"] != json.loads(json.dumps(configs)):
            return None
        try:
            rows = [measurement_of(row) for row in record["results"]]
        except (ValueError, OverflowError, AttributeError):
            return None
        return Finished(record["status"], rows, record["date"])

    def add(
        self, size: int, configs: Sequence[Any], status: int, rows: Sequence[Measurement]
    ) -> None:
        """Append a size and see it safely to the disk; trouble is only noted."""
        record = {
            "of": self._mark,
            "size": size,
            "configs": configs,
            "status": status,
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "results": [row.as_row() for row in rows],
        }
        try:
            if not self._begun:
                self.path.unlink(missing_ok=True)
                self._begun = True
            append_record(self.path, self._head, record)
            self.trouble = ""
        except OSError as error:
            self.trouble = f"{self.path} cannot be written: {error.strerror or error}"

    def remove(self) -> None:
        """Remove the file of a sweep that has ended."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"{self.path} cannot be removed: {error.strerror or error}"


def _is_finished(record: Mapping[str, Any]) -> bool:
    """Return whether a record has what one of a size has."""
    kinds = {"size": int, "status": int, "date": str, "configs": list, "results": list}
    return all(isinstance(record.get(name), kind) for name, kind in kinds.items())
