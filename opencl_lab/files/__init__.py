"""A user's arrays in files: `.npy`, `.npz`, numbers in text, sound, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.files.blocks import NpyFile, scratch_file
from opencl_lab.files.convert import convert
from opencl_lab.files.pictures import check_picture, read_picture, write_picture
from opencl_lab.files.sound import read_sound
from opencl_lab.files.text import check_text, read_text, write_columns, write_text
from opencl_lab.paths import check_target, write_target
from opencl_lab.wording import counted

__all__ = [
    "FORMATS",
    "PICTURES",
    "SOUNDS",
    "NpyFile",
    "Stored",
    "check_array",
    "check_output",
    "convert",
    "is_text",
    "read_array",
    "read_stored",
    "scratch_file",
    "summary",
    "write_array",
]

FORMATS = (".npy", ".npz", ".csv", ".txt")
PICTURES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm")
SOUNDS = (".wav",)  # to be read only
TEXTS = {".csv": ",", ".txt": " "}

Columns: TypeAlias = Callable[[], Mapping[str, np.ndarray[Any, Any]] | None]
"""Makes what text files hold instead of an array: real numbers below their names, or None."""


@dataclass(frozen=True)
class Stored:
    """What a file holds: its numbers, and what it says of them.

    Parameters
    ----------
    array : numpy.ndarray
    options : mapping
        By the option that asks for it.
    names : tuple of str
        Those of the columns, if a text file begins with them.
    """

    array: np.ndarray[Any, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def _check_format(path: Path, verb: str, formats: tuple[str, ...]) -> None:
    if path.suffix.lower() not in formats:
        raise InvalidProblem(f"cannot {verb} {path}: its name must end in {' '.join(formats)}")


def read_array(path: Path, formats: tuple[str, ...] = FORMATS) -> np.ndarray[Any, Any]:
    """Return the array of `read_stored`."""
    return read_stored(path, formats).array


def read_stored(path: Path, formats: tuple[str, ...] = FORMATS) -> Stored:
    """Read one array of numbers, and what the file says about it.

    Parameters
    ----------
    path : Path
        ``.npy``; ``.npz`` with one array; ``.csv`` with commas, semicolons or tabs, or
        ``.txt`` with white space, with or without a line of names first, a name for each
        column. Text becomes int64 if
        every number is whole (uint64 if that takes it), else float64, or complex128
        where numbers are written as ``1+2j``. Pictures become rows x columns, or
        rows x columns x 3 or 4 colours, of uint8 or, for 16-bit grey, uint16.
        ``.wav`` becomes floating point from -1 to 1, a row per channel if there are
        several, and says its ``rate``, samples per second.
    formats : tuple of str
        Endings to accept.

    Raises
    ------
    InvalidProblem
        If the file is missing, unreadable, of another format, not numeric, or
        holds Python objects.
    """
    _check_format(path, "read", formats)
    suffix = path.suffix.lower()
    options: dict[str, Any] = {}
    names: tuple[str, ...] = ()
    try:
        if suffix in PICTURES:
            array = read_picture(path)
        elif suffix in SOUNDS:
            array, options["rate"] = read_sound(path)
        elif suffix in TEXTS:
            table = read_text(path)
            array, names = table.numbers, table.names
        else:
            array = _read_numpy(path)
    except OSError as error:
        raise InvalidProblem(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        reason = "it is not UTF-8; save it as UTF-8" if suffix in TEXTS else "it is damaged"
        raise InvalidProblem(f"cannot read {path}: {reason}") from error
    except (ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is damaged"
        raise InvalidProblem(f"cannot read {path}: {reason}") from error
    except Exception as error:  # damage comes to light in zipfile, zlib, tokenize, ...
        raise InvalidProblem(f"cannot read {path}: it is damaged ({error})") from error
    if array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{path} holds values of dtype {array.dtype}, not numbers")
    return Stored(array, options, names)


def is_text(path: Path) -> bool:
    """Return whether a file is numbers in text, by its name."""
    return path.suffix.lower() in TEXTS


def summary(stored: Stored) -> str:
    """Return what was read from a text file, in words."""
    shape = stored.array.shape
    found = counted(stored.array.size, "number")
    if len(shape) == 2:
        found = f"{counted(shape[0], 'row')} x {counted(shape[1], 'column')}"
    named = "a name" if len(stored.names) == 1 else "a line of names"
    return f"{found} below {named}" if stored.names else found


def _read_numpy(path: Path) -> np.ndarray[Any, Any]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except ValueError as error:
        if path.is_file() and not _begins_as_numpy(path):
            raise ValueError("it does not begin as .npy and .npz files do") from error
        raise
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        if len(loaded.files) != 1:
            names = ", ".join(loaded.files) or "none"
            raise ValueError(f"it must hold exactly one array and holds: {names}")
        return np.asarray(loaded[loaded.files[0]])


def _begins_as_numpy(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6).startswith((b"\x93NUMPY", b"PK"))


def check_output(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Check early that `write_array` could write to `path`.

    Raises
    ------
    InvalidProblem
        If its format is unknown, or as from `check_target`.
    """
    _check_format(path, "write", tuple(item for item in formats if item not in SOUNDS))
    check_target(path, 0)  # `check_array` knows how large it becomes


def check_array(
    path: Path,
    array: np.ndarray[Any, Any],
    columns: Columns | None = None,
    *,
    like: np.ndarray[Any, Any] | None = None,
) -> None:
    """Check early that `write_array` could write an array of this shape and type to `path`.

    Raises
    ------
    InvalidProblem
        If the format of the file cannot hold it, or its disk has no room.
    """
    suffix = path.suffix.lower()
    check_target(path, _least_bytes(suffix, array))
    try:
        if suffix in PICTURES:
            check_picture(array, like)
        elif suffix in TEXTS and array.ndim > 2 and (columns is None or columns() is None):
            check_text(array)  # columns are asked for only where it matters: they take time
    except ValueError as error:
        raise InvalidProblem(f"cannot write {path}: {error}") from error


def _least_bytes(suffix: str, array: np.ndarray[Any, Any]) -> int:
    """Return how many bytes a file with an array has at least; little is known of pictures."""
    if suffix in TEXTS:
        return 2 * array.size  # a digit, and what separates it from the next
    return 0 if suffix in PICTURES else array.nbytes


def write_array(
    path: Path,
    array: np.ndarray[Any, Any],
    columns: Columns | None = None,
    *,
    like: np.ndarray[Any, Any] | None = None,
    names: Sequence[str] = (),
) -> None:
    """Write an array in the format that the name of `path` says, all of it or nothing.

    Parameters
    ----------
    path : Path
    array : numpy.ndarray
    columns : callable, optional
        Asked by text files only: what they hold instead of it, real numbers below their names; None
        for the array itself.
    like : numpy.ndarray, optional
        The image that a picture was made of, see `pictures.write_picture`.
    names : sequence of str, optional
        What a text file begins with, a name for each column.

    Raises
    ------
    InvalidProblem
        If the format is unknown, or the file cannot be written.
    """
    check_output(path, (*FORMATS, *PICTURES))
    suffix = path.suffix.lower()
    try:
        with write_target(path) as temporary:
            if suffix in PICTURES:
                write_picture(temporary, suffix, array, like)
            elif suffix == ".npy":
                np.save(temporary, array, allow_pickle=False)
            elif suffix == ".npz":
                np.savez(temporary, array)
            elif columns is not None and (named := columns()) is not None:
                write_columns(temporary, named, TEXTS[suffix])
            else:
                write_text(temporary, array, TEXTS[suffix], names)
    except InvalidProblem:
        raise
    except ValueError as error:
        raise InvalidProblem(f"cannot write {path}: {error}") from error
