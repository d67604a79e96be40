"""A call: a function, its arrays with their layouts in memory, and its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MARGIN = 32  # bytes around the elements of an array

PAIRS = {"sort_by_key", "topk"}
"""Functions that return two arrays, and take two as `out`."""


@dataclass(frozen=True)
class Layout:
    """The layout of an array in memory.

    Parameters
    ----------
    order : tuple of int
        Axes from the slowest to the fastest.
    steps : tuple of int
        Elements from one of an axis to the next, in units of what is dense; 0 repeats one.
    odd_ones : bool
        Whether axes of one element have strides that no dense array has.
    offset : int
        Elements before the first one.
    shift : int
        Bytes by which it is not aligned.
    swapped, locked : bool
        Other byte order; read-only.
    queue : int or None
        On a device: which queue the array has.
    pooled : bool
        Whether it has an allocator.
    """

    order: tuple[int, ...]
    steps: tuple[int, ...]
    odd_ones: bool = False
    offset: int = 0
    shift: int = 0
    swapped: bool = False
    locked: bool = False
    queue: int | None = 0
    pooled: bool = False


@dataclass(frozen=True)
class Data:
    """An argument that is an array: its name, shape, dtype, layout, and what it shares."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    resident: bool
    alias: tuple[str, str] | None = None  # of which argument, and how
    wrapped: str = ""  # a list or a tuple instead of an array


@dataclass(frozen=True)
class Call:
    """One call: a function, its arrays, and its options."""

    function: str
    data: tuple[Data, ...]
    options: dict[str, Any] = field(default_factory=dict)
    out: tuple[Data, ...] = ()
    by_name: bool = False  # arrays given by keyword
    followed: bool = False  # by a call on its results, before anybody else has looked at them

    def __str__(self) -> str:
        how = " by name" * self.by_name + " followed" * self.followed
        lines = [f"{self.function} {self.options}{how}"]
        return "\n".join([*lines, *(f"    {item}" for item in (*self.data, *self.out))])
