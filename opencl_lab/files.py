"""Arrays in files: `.npy`, `.npz`, and numbers in `.csv` or `.txt`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.paths import replace_file

__all__ = ["check_output", "convert", "read_array", "write_array"]

FORMATS = (".npy", ".npz", ".csv", ".txt")
ENCODING = "utf-8-sig"  # with or without the mark that spreadsheets put first


def read_array(path: Path) -> np.ndarray[Any, Any]:
    """Read one array of numbers.

    Parameters
    ----------
    path : Path
        ``.npy``; ``.npz`` with one array; ``.csv`` with commas, or ``.txt`` with
        white space, with or without a line of names first. Text becomes int64 if
        every number is whole (uint64 if that takes it), else float64.

    Raises
    ------
    InvalidProblem
        If the file is missing, unreadable, of another format, not numeric, or
        holds Python objects.
    """
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot read {path}: its name must end in {' '.join(FORMATS)}")
    try:
        array = _read_text(path) if path.suffix.lower() in (".csv", ".txt") else _read_numpy(path)
    except OSError as error:
        raise InvalidProblem(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is damaged"
        raise InvalidProblem(f"cannot read {path}: {reason}") from error
    except Exception as error:  # damage comes to light in zipfile, zlib, tokenize, ...
        raise InvalidProblem(f"cannot read {path}: it is damaged ({error})") from error
    if array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{path} holds values of dtype {array.dtype}, not numbers")
    return array


def _read_numpy(path: Path) -> np.ndarray[Any, Any]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        if len(loaded.files) != 1:
            names = ", ".join(loaded.files) or "none"
            raise ValueError(f"it must hold exactly one array and holds: {names}")
        return np.asarray(loaded[loaded.files[0]])


def _read_text(path: Path) -> np.ndarray[Any, Any]:
    delimiter = "," if path.suffix.lower() == ".csv" else None
    skip = _lines_before_numbers(path, delimiter)
    if skip is None:
        return np.empty(0)  # loadtxt would warn
    for dtype in (np.int64, np.uint64, np.float64):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy would cut 1.5 to 1 with a warning
                numbers = np.loadtxt(
                    path, dtype=dtype, delimiter=delimiter, skiprows=skip, encoding=ENCODING
                )
                return np.atleast_1d(numbers)
        except (ValueError, DeprecationWarning):
            if dtype == np.float64:
                raise
    raise AssertionError("unreachable")


def _lines_before_numbers(path: Path, delimiter: str | None) -> int | None:
    """Return how many lines go before the numbers: empty ones, comments and one with names.

    None if there are no other lines.
    """
    names_seen = False
    with path.open(encoding=ENCODING) as file:
        for count, line in enumerate(file):
            content = line.partition("#")[0].strip()
            if not content:
                continue
            if names_seen or any(map(_is_number, content.split(delimiter))):
                return count
            names_seen = True
    if names_seen:
        raise ValueError("it holds no numbers")
    return None


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return False
    return True


def convert(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return `array` as `dtype`, with every value kept but for rounding to a floating type.

    Raises
    ------
    InvalidProblem
        If a value would be lost: out of range, a fraction or NaN in an integer, or
        the imaginary part of a complex number.
    """
    target = np.dtype(dtype)
    kind = array.dtype.kind
    if kind == "c" and target.kind != "c":
        raise InvalidProblem(f"cannot convert complex numbers to {target}")
    with np.errstate(all="ignore"):
        converted = array.astype(target, copy=False)
        if target.kind in "fc":
            lost = np.isfinite(array) & ~np.isfinite(converted)
        else:
            limits = np.iinfo(target)
            if kind == "f":
                low, high = np.float64(limits.min), np.float64(limits.max + 1)
                lost = ~((array >= low) & (array < high) & (array == np.trunc(array)))
            else:
                lost = (array < limits.min) | (array > limits.max)
    if lost.any():
        raise InvalidProblem(
            f"the value {array[lost][0]} cannot be converted to {target} "
            f"({np.count_nonzero(lost)} such); leave --dtype out, or take another"
        )
    return converted


def check_output(path: Path) -> None:
    """Check early that `write_array` could write to `path`.

    Raises
    ------
    InvalidProblem
        If its format is unknown or its folder does not exist.
    """
    if path.suffix.lower() not in FORMATS:
        raise InvalidProblem(f"cannot write {path}: its name must end in {' '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InvalidProblem(f"cannot write {path}: the folder {path.parent} does not exist")


def write_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array in the format that the name of `path` says, all of it or nothing.

    Raises
    ------
    InvalidProblem
        If the format is unknown, or the file cannot be written.
    """
    check_output(path)
    try:
        with replace_file(path) as temporary:
            if path.suffix.lower() == ".npy":
                np.save(temporary, array, allow_pickle=False)
            elif path.suffix.lower() == ".npz":
                np.savez(temporary, array)
            else:
                _write_text(temporary, array, "," if path.suffix.lower() == ".csv" else " ")
    except OSError as error:
        raise InvalidProblem(f"cannot write {path}: {error.strerror or error}") from error


def _write_text(path: Path, array: np.ndarray[Any, Any], delimiter: str) -> None:
    if array.ndim > 2:
        raise InvalidProblem(f"text files hold at most two dimensions, not {array.ndim}")
    digits = {4: "%.9g", 8: "%.17g"}.get(array.dtype.itemsize, "%.9g")
    np.savetxt(path, array, fmt=digits if array.dtype.kind == "f" else "%d", delimiter=delimiter)
