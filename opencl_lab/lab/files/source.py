"""Sources of input: a file, a named array in a file, or standard input."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from opencl_lab.core.early import at_end
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.trust import temporary_place

STDIN = "-"
DEVICE = "/dev/stdin"  # the same, from which named arrays can be read
STDOUT = "/dev/stdout"
BEGINNINGS = {
    b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PK\x05\x06": ".npz", b"RIFF": ".wav",
    b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg",
    b"II*\0": ".tif", b"MM\0*": ".tif",
    b"P2\n": ".pgm", b"P5\n": ".pgm", b"P3\n": ".ppm", b"P6\n": ".ppm",
}  # fmt: skip
"""The first bytes of each format; other files are text."""
HEAD = 1 << 16


def split_part(name: str | Path, formats: tuple[str, ...]) -> tuple[str, str]:
    """Return the file and the name of the array in ``data.npz:member`` or ``table.csv:column``.

    The name is empty for a whole file, such as an existing file whose name contains the colon.
    """
    text = str(name)
    if Path(text).exists():
        return text, ""
    pieces = text.split(":")
    splits = [(":".join(pieces[:at]), ":".join(pieces[at:])) for at in range(1, len(pieces))]
    able = [
        (file, part)
        for file, part in splits
        if part and (file == DEVICE or Path(file).suffix.lower() in formats)
    ]
    there = [(file, part) for file, part in able if Path(file).exists()]
    return (*there, *able, (text, ""))[0]


def standard_input() -> Path:
    """Return a file with all of standard input, named by its format.

    It exists until the process ends, so that several inputs may be read from it.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise InvalidProblem("cannot read standard input: it is closed")
    return Path(_kept(sys.stdin).name)


@lru_cache(maxsize=1)
def _kept(stream: TextIO) -> Any:
    """Return an open file with the content of a stream; closing removes it."""
    head = stream.buffer.read(HEAD)
    file = tempfile.NamedTemporaryFile(  # noqa: SIM115
        prefix="oclab-", suffix=_suffix(head), dir=temporary_place()
    )
    at_end(file.close)
    file.write(head)
    shutil.copyfileobj(stream.buffer, file)
    file.flush()
    return file


def _suffix(head: bytes) -> str:
    """Return the suffix of a format by the first bytes of a file."""
    for beginning, suffix in BEGINNINGS.items():
        if head.startswith(beginning):
            return suffix
    lines = (line for line in head.splitlines() if not line.lstrip().startswith(b"#"))
    return ".csv" if any(mark in line for line in lines for mark in (b",", b";", b"\t")) else ".txt"
