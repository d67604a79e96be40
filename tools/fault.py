"""What `seeded_faults.py` seeds: a text, what stands in its place, who must notice.

A text is looked for in all files below a place, and must occur there `times` times; so files may be
split and renamed. Where a template or a module changes its words, change them in the faults, too.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fault"]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Parameters
    ----------
    name : str
        What is wrong then.
    place : str
        A folder, or a file.
    old, new : str
        A text, and what is put in its place.
    tests : str
        Files below ``tests/`` that should notice, and after ``-k`` which of their tests.
    times : int
        How often the text occurs.
    """

    name: str
    place: str
    old: str
    new: str
    tests: str
    times: int = 1
