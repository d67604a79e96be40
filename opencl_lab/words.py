"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted", "duration", "size_text"]


def counted(number: int, one: str, many: str = "") -> str:
    """Return how many there are, such as ``1 file``; `many` is `one` with an s by default."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def size_text(nbytes: float) -> str:
    """Return a number of bytes in words, such as ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} TiB"


def duration(seconds: float) -> str:
    """Return how long something takes in the unit that fits, such as ``3 hours``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return counted(round(seconds / length), unit)
    return f"{seconds:.2g} s"
