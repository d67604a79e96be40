"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted", "duration"]


def counted(number: int, one: str, many: str = "") -> str:
    """Return how many there are, such as ``1 file``; `many` is `one` with an s by default."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Return how long something takes in the unit that fits, such as ``3 hours``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return counted(round(seconds / length), unit)
    return f"{seconds:.2g} s"
