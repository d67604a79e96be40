"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, one: str, many: str = "") -> str:
    """Return how many there are, such as ``1 file``; `many` is `one` with an s by default."""
    return f"{number} {one if number == 1 else many or one + 's'}"
