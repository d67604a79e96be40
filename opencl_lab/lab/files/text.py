"""Numbers in text: `.csv` with commas, semicolons or tabs, `.txt` with white space.

A field that is neither a number nor plausibly the name of a column is refused, with its line and
position. Otherwise a header read as numbers, or numbers read as a header, would go unnoticed.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.wording import counted, listed

ENCODING = "utf-8-sig"  # with or without a byte order mark, which spreadsheets write
QUOTE = '"'
COMMENT = "#"
DELIMITERS = (";", "\t", ",")
"""The delimiter of `.csv` is the first of these in a line of numbers. Numbers contain no semicolons
or tabs, but may contain decimal commas."""
MISSING = {"", "-", "--", ".", "?", "na", "n/a", "<na>", "nil", "none", "null", "missing"}
SHOWN = 30  # characters of a field in a message
CONTROL = re.compile(r"[\0-\x08\n-\x1f\x7f-\x9f]")
NUMERAL = re.compile(r"(\d+|(?=\.\d))(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)
EXACT = 2.0**53
"""Up to here float64 holds all whole numbers."""


@dataclass(frozen=True)
class NumberTable:
    """The content of a text file: numbers, and the names of their columns, if it has any."""

    numbers: np.ndarray[Any, Any]
    names: tuple[str, ...] = ()


# --------------------------------------------------------------------- reading


def read_text(path: Path, rounded: bool | None = None) -> NumberTable:
    """Read int64 (or uint64) if all numbers are whole, else float64 or complex128.

    A single row or column has one dimension, but a row below names has two. ValueError is raised
    for a field that is not a number, for a line with more or fewer fields than others, for a number
    beyond float64, and, unless `rounded`, for a whole number that float64 would change.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        return NumberTable(np.empty(0))  # loadtxt would warn
    second = next(lines, first)
    delimiter = _delimiter(path, second[1])
    names = _names(first, second, delimiter)
    if names and second is first:
        raise ValueError("it holds no numbers")
    skip = first[0] if names else 0
    try:
        numbers = _numbers_of(path, len(names), delimiter=delimiter, skiprows=skip, quotechar=QUOTE)
    except (ValueError, DeprecationWarning):
        _find_fault(path, delimiter, skip)
        raise
    columns = len(_numbers(second[1], delimiter))
    below = (item for item in _lines(path) if item[0] > skip)
    for number, line in compress(below, _large_rows(numbers, columns)):
        for place, field in enumerate(_numbers(line, delimiter), 1):
            _check_value(number, place, field, rounded)
    return NumberTable(numbers, names)


def read_columns(path: Path, wanted: str, rounded: bool | None = None) -> NumberTable:
    """Read columns by their names in the first line; others may contain anything.

    `wanted` is a name, or several separated by commas: a single column has one dimension, several
    have two. ValueError is raised for a missing column, a line with more or fewer fields than there
    are names, and for values as in `read_text`.
    """
    lines = _lines(path)
    _, line = next(lines, (0, ""))
    delimiter = _delimiter(path, line)
    names = _fields(line, delimiter, spaces=True)
    if all(map(_is_number, names)):
        raise ValueError("it does not begin with a line of names")
    chosen = [wanted] if wanted in names else [name.strip() for name in wanted.split(",")]
    for name in chosen:
        if names.count(name) != 1:
            found = "several columns" if name in names else "no column"
            raise ValueError(f"it has {found} {name!r}; it has: {listed(names)}")
    places = [names.index(name) for name in chosen]
    rows: dict[int, list[str]] = {}
    for number, line in lines:
        fields = _fields(line, delimiter)
        if len(fields) != len(names):
            raise ValueError(
                f"line {number} has {counted(len(fields), 'field')}, and there are "
                f"{counted(len(names), 'name')}"
            )
        fields[-1] = fields[-1].partition(COMMENT)[0].strip()
        for place in places:
            if not _is_number(fields[place]):
                raise ValueError(_fault(number, place + 1, fields[place], delimiter))
        rows[number] = [fields[place] for place in places]
    if not rows:
        raise ValueError("it holds no numbers")
    numbers = _numbers_of(list(map(" ".join, rows.values())), len(chosen))
    for number, fields in compress(rows.items(), _large_rows(numbers, len(chosen))):
        for place, field in zip(places, fields, strict=True):
            _check_value(number, place + 1, field, rounded)
    return NumberTable(numbers, tuple(chosen))


def _numbers_of(source: Path | list[str], columns: int, **how: Any) -> np.ndarray[Any, Any]:
    """Return numbers in the first type that holds all; one column has one dimension.

    ValueError or DeprecationWarning is raised if there is none.
    """
    how |= {"encoding": ENCODING, "ndmin": 2 if columns > 1 else 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy would truncate 1.5 to 1 with a warning
        for name in ("int64", "uint64", "float64"):
            with suppress(ValueError, DeprecationWarning):
                return np.loadtxt(source, dtype=np.dtype(name), **how)
        return np.loadtxt(source, dtype=np.dtype("complex128"), **how)


def _large_rows(numbers: np.ndarray[Any, Any], columns: int) -> list[bool]:
    """Return for each row whether float64 may have changed one of its whole numbers."""
    if numbers.dtype.kind not in "fc":
        return []
    parts = np.abs(numbers.reshape(-1, columns).view(np.float64))  # real and imaginary
    large: Any = (parts >= EXACT).any(axis=1)
    return list(large)


def _check_value(number: int, place: int, field: str, rounded: bool | None) -> None:
    """Raise ValueError for a field that float64 does not hold; digits of a fraction may be lost."""
    where = f"line {number}, field {place}: {_shown(field)}"
    for digits, fraction, exponent in NUMERAL.findall(field):
        value = float(digits + fraction + exponent)
        if math.isinf(value):
            raise ValueError(f"{where} is beyond the largest float64")
        whole = not exponent and not fraction.strip(".0")
        if whole and not rounded and Decimal(digits or 0) != value:
            advice = "" if rounded is None else "--dtype float64 accepts that, and "
            raise ValueError(
                f"{where} becomes {value:.0f} in float64, which other numbers need; {advice}"
                ".npy files keep every type"
            )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither empty nor comments, with their numbers."""
    around = " \r\n" if path.suffix.lower() == ".csv" else None
    with path.open(encoding=ENCODING) as file:
        for number, line in enumerate(file, 1):
            content = line.strip(around)
            if content.strip() and not content.lstrip().startswith(COMMENT):
                yield number, content


def _delimiter(path: Path, line: str) -> str | None:
    """Return the delimiter of a line of numbers; None for white space."""
    if path.suffix.lower() != ".csv":
        return None
    plain = re.sub(r'"[^"]*"', "", line.partition(COMMENT)[0])
    return next((item for item in DELIMITERS if item in plain), ",")


def _fields(line: str, delimiter: str | None, spaces: bool = False) -> list[str]:
    """Return the fields of a line, without quotation marks; `spaces` may stand before these."""
    if delimiter is None:
        line, delimiter = " ".join(line.split()), " "
    (fields,) = csv.reader([line], delimiter=delimiter, quotechar=QUOTE, skipinitialspace=spaces)
    return [field.strip() for field in fields]


def _numbers(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of a line of numbers like `loadtxt`, without a comment."""
    return _fields(line.partition(COMMENT)[0].rstrip(" "), delimiter)


def _names(
    first: tuple[int, str], second: tuple[int, str], delimiter: str | None
) -> tuple[str, ...]:
    """Return the names of columns in the first line; none if it contains numbers.

    ValueError is raised for a field that is neither.
    """
    number, line = first
    if all(map(_is_number, _numbers(line, delimiter))):
        return ()
    names = _fields(line, delimiter, spaces=True)
    if any(map(_is_number, names)):
        return ()  # not all of them: `_find_fault` says which
    for place, name in enumerate(names, 1):
        if not _is_name(name):
            raise ValueError(_fault(number, place, name, delimiter, " nor the name of a column"))
    columns = len(_numbers(second[1], delimiter))
    if len(names) != columns:
        raise ValueError(
            f"line {number} has {counted(len(names), 'name')}, and line {second[0]} has "
            f"{counted(columns, 'field')}; begin line {number} with {COMMENT} if it is a comment"
        )
    return tuple(names)


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return False
    return not {"_", " "} & set(text) and text.lower() not in ("j", "+j", "-j")


def _is_name(text: str) -> bool:
    """Return whether a field has a letter, and does not begin like a number or a date.

    Control characters are refused, as names are printed and written to results.
    """
    return (
        text.lower() not in MISSING
        and CONTROL.search(text) is None
        and not _is_number(text)
        and re.search(r"[^\W\d_]", text) is not None
        and re.match(r"\W*\d", text) is None
    )


def _find_fault(path: Path, delimiter: str | None, skip: int) -> None:
    """Raise ValueError for the first field that is not a number, if there is one."""
    columns = before = 0
    for number, line in _lines(path):
        if number <= skip:
            continue
        fields = _numbers(line, delimiter)
        for place, field in enumerate(fields, 1):
            if not _is_number(field):
                raise ValueError(_fault(number, place, field, delimiter))
        if columns and len(fields) != columns:
            raise ValueError(
                f"line {number} has {counted(len(fields), 'field')}, and line {before} has "
                f"{columns}"
            )
        columns, before = len(fields), number


def _shown(field: str) -> str:
    return field if len(field) <= SHOWN else field[:SHOWN] + "..."


def _fault(number: int, place: int, field: str, delimiter: str | None, nor: str = "") -> str:
    """Return an error message about a field."""
    where, shown = f"line {number}, field {place}", _shown(field)
    if not field and nor and place == 1:  # as pandas writes its index
        return (
            f"{where} is empty, where a column needs a name; leave the index out (index=False), or "
            "name the columns to read, as in table.csv:price"
        )
    if not field:
        return f"{where} is empty; fill it in, or leave the line out"
    if field.lower() in MISSING:
        return f"{where} is a missing value, {shown!r}; fill it in, or leave the line out"
    hint = "; write decimals with a point" if re.fullmatch(r"[+-]?[\d.]*,\d+", field) else ""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", field):
        hint = "; write thousands without commas, and decimals with a point"
    if delimiter is None and field.endswith(","):
        hint = "; call a file with commas .csv"
    return f"{where} is {'neither' if nor else 'not'} a number{nor}: {shown!r}{hint}"


# --------------------------------------------------------------------- writing


def check_text(array: np.ndarray[Any, Any]) -> None:
    """Raise ValueError if an array has more dimensions than `write_text` can write."""
    if array.ndim > 2:
        raise ValueError(
            f"text files hold at most two dimensions, not {array.ndim}; .npy holds any number"
        )


def write_text(
    path: Path, array: np.ndarray[Any, Any], delimiter: str, names: Sequence[str] = ()
) -> None:
    """Write an array that passes `check_text`, below the names of its columns, if there are any.

    Each number is the shortest text that reads back as the same value of its type.
    """
    check_text(array)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    rows = array if array.ndim == 2 else array.reshape(-1, 1)
    _write(path, map(_texts, rows), delimiter, names)


def write_columns(path: Path, columns: Mapping[str, np.ndarray[Any, Any]], delimiter: str) -> None:
    """Write real numbers in columns below a line of their names."""
    _write(path, zip(*map(_texts, columns.values()), strict=True), delimiter, list(columns))


def _write(path: Path, rows: Iterable[Sequence[str]], delimiter: str, names: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        if names:
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerow(names)
        file.writelines(delimiter.join(row) + "\n" for row in rows)


def _texts(numbers: np.ndarray[Any, Any]) -> list[str]:
    """Return numbers as NumPy prints one, which is the shortest text; 2 instead of 2.0."""
    if numbers.dtype.kind == "c":
        return [str(number).strip("()") for number in numbers]
    if numbers.dtype.kind != "f":
        return list(map(str, numbers.tolist()))
    # As an integer, -0.0 would lose its sign.
    return [
        text[:-2] if text.endswith(".0") and text != "-0.0" else text for text in map(str, numbers)
    ]
