"""Formatting and parsing of numbers in text."""

from __future__ import annotations

import cmath
import unicodedata
from collections.abc import Collection

HARMLESS = ("Zs", "Co")
"""Categories of Unicode that are printed though not printable to Python: spaces, private use."""
MOST_NAMES, MOST_LETTERS = 10, 60
UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as ``1 file``; `many` is `one` with an s by default."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def visible(text: str, kept: str = "") -> str:
    """Return text with control characters as `repr` writes them, but for those `kept`.

    These are all that may move a cursor, begin a line, colour it, reverse it or be half a letter.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in kept or unicodedata.category(letter) in HARMLESS
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def listed(names: Collection[str]) -> str:
    """Return names with commas, of many or long ones the first."""
    first = [
        name if len(name) <= MOST_LETTERS else name[:MOST_LETTERS] + "..."
        for name in map(visible, list(names)[:MOST_NAMES])
    ]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def plain(value: float, digits: int = 3) -> str:
    """Return a number without exponent: 1,740 instead of 1.74e+03; 2.00, 0.533, 0.0123."""
    text = f"{value:#.{digits}g}"
    if abs(float(text)) >= 1000:
        text = f"{float(text):,.0f}"
    return text.removesuffix(".")


def size_text(nbytes: float) -> str:
    """Return a number of bytes with a unit, such as ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} TiB"


def number_of(text: str) -> complex:
    """Return the number in a text: ``0.5``, ``inf``, ``1+2j``; else ValueError.

    Digits beyond the largest float64 are no infinity.
    """
    number = complex(text) if "j" in text.lower() else float(text)
    if cmath.isinf(number) and "inf" not in text.lower():
        raise ValueError(f"{text!r} is beyond the largest float64")
    return number


def bytes_of(text: str) -> float:
    """Return the positive number of bytes in a text: ``2e9``, ``256M``, ``1.5 GiB``; units of 1024.

    Raises ValueError with a message for users.
    """
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = number[-1:] if number[-1:].isalpha() else ""
    try:
        found = float(number.removesuffix(unit)) * 1024.0 ** UNITS[unit]
    except (ValueError, KeyError):
        found = 0.0
    if not 0 < found < float("inf"):
        raise ValueError(f"{text!r} is not a number of bytes, such as 256M or 2e9")
    return found


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit, such as ``3 hours``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return counted(round(seconds / length), unit)
    return f"{seconds:.2g} s"
