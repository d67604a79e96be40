"""Numbers in text: `.csv` with commas, `.txt` with white space."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["check_text", "read_text", "write_columns", "write_text"]

ENCODING = "utf-8-sig"  # with or without the mark that spreadsheets put first


def read_text(path: Path) -> np.ndarray[Any, Any]:
    """Return int64 if every number is whole (uint64 if that takes it), float64 or complex128."""
    delimiter = "," if path.suffix.lower() == ".csv" else None
    skip = _lines_before_numbers(path, delimiter)
    if skip is None:
        return np.empty(0)  # loadtxt would warn
    refused: ValueError | DeprecationWarning | None = None
    for dtype in (np.int64, np.uint64, np.float64, np.complex128):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy would cut 1.5 to 1 with a warning
                numbers = np.loadtxt(
                    path, dtype=dtype, delimiter=delimiter, skiprows=skip, encoding=ENCODING
                )
                return np.atleast_1d(numbers)
        except (ValueError, DeprecationWarning) as error:
            # What real numbers cannot be is told: most files are meant to hold these.
            refused = refused if dtype == np.complex128 else error
    assert refused is not None
    raise refused


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


def check_text(array: np.ndarray[Any, Any]) -> None:
    """Check that `write_text` could write an array of this shape.

    Raises
    ------
    ValueError
        If it has more than two dimensions.
    """
    if array.ndim > 2:
        raise ValueError(
            f"text files hold at most two dimensions, not {array.ndim}; .npy holds any number"
        )


def write_text(path: Path, array: np.ndarray[Any, Any], delimiter: str) -> None:
    """Write what `check_text` lets pass so that reading gives the same numbers."""
    check_text(array)
    digits = _digits(array)
    if array.dtype.kind == "c":
        digits = f"{digits}{digits.replace('%', '%+')}j"
    fmt = digits if array.dtype.kind in "fc" else "%d"
    columns = array.shape[1] if array.ndim == 2 else 1
    np.savetxt(path, array, fmt=[fmt] * columns, delimiter=delimiter)


def _digits(array: np.ndarray[Any, Any]) -> str:
    """Return the format that writes floating-point numbers so that reading gives the same."""
    return {4: "%.9g", 8: "%.17g"}.get(array.real.dtype.itemsize, "%.9g")


def write_columns(path: Path, columns: Mapping[str, np.ndarray[Any, Any]], delimiter: str) -> None:
    """Write real numbers in columns below a line of their names."""
    np.savetxt(
        path,
        np.column_stack([column.astype(np.float64) for column in columns.values()]),
        fmt=[_digits(column) for column in columns.values()],
        delimiter=delimiter,
        header=delimiter.join(columns),
        comments="",
    )
