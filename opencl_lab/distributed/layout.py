"""Which elements of a global array each rank has: pure index arithmetic, without MPI.

```text
 slab(0)        blocks((2, 2))     block_cyclic((2, 2), (2, 2))
 0 0 0 0        0 0 1 1            0 0 1 1 0 0
 0 0 0 0        0 0 1 1            0 0 1 1 0 0
 1 1 1 1        2 2 3 3            2 2 3 3 2 2
 1 1 1 1        2 2 3 3            2 2 3 3 2 2
```

Ranks are numbered along the last axis of the grid first. Parts are as even as those of
`numpy.array_split`: the first ones have one more element if they cannot be equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import TypeAlias

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import whole_number

Run: TypeAlias = tuple[int, int]
"""Indices from a first one up to, and without, a last one."""
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """How one axis of `n` elements is cut into parts.

    Parameters
    ----------
    n : int
    parts : int
    block : int, optional
        Elements of each block, which go to the parts in turn; without it, each part is one block.
    lengths : tuple of int, optional
        The length of each part, if they are not even.
    """

    n: int
    parts: int = 1
    block: int | None = None
    lengths: tuple[int, ...] | None = None

    def runs(self, part: int) -> list[Run]:
        """Return the indices that a part has, in ascending order and without empty runs."""
        if self.block is not None:
            starts = range(part * self.block, self.n, self.parts * self.block)
            return [(start, min(start + self.block, self.n)) for start in starts]
        begin, end = _bounds(self)[part : part + 2]
        return [(begin, end)] if begin < end else []

    @property
    def bounds(self) -> list[int]:
        """Where the parts begin, and the end of the last one; not for cyclic blocks."""
        return list(_bounds(self))

    def length(self, part: int) -> int:
        """Return how many elements a part has."""
        return sum(end - begin for begin, end in self.runs(part))


@lru_cache
def _bounds(split: Split) -> tuple[int, ...]:
    """Return where the parts begin, and the end; kept, as all ranks look at all parts."""
    if split.lengths is not None:
        return tuple(accumulate(split.lengths, initial=0))
    least, more = divmod(split.n, split.parts)
    return tuple(part * least + min(part, more) for part in range(split.parts + 1))


@dataclass(frozen=True)
class Layout:
    """How a global array is cut along each axis; each combination of parts is one rank's."""

    splits: tuple[Split, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the global array."""
        return tuple(split.n for split in self.splits)

    @property
    def grid(self) -> Shape:
        """The number of parts along each axis."""
        return tuple(split.parts for split in self.splits)

    def coordinates(self, rank: int) -> Shape:
        """Return which part of each axis a rank has."""
        found = []
        for parts in reversed(self.grid):
            rank, part = divmod(rank, parts)
            found.append(part)
        return tuple(reversed(found))

    def runs(self, rank: int) -> list[list[Run]]:
        """Return the indices that a rank has along each axis."""
        pairs = zip(self.splits, self.coordinates(rank), strict=True)
        return [split.runs(part) for split, part in pairs]

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of a rank's part."""
        return tuple(sum(end - begin for begin, end in runs) for runs in self.runs(rank))


@dataclass(frozen=True)
class Gathered:
    """All of an array on one rank, or on every rank: where `gather` puts it."""

    shape: Shape
    root: int | None = None

    def runs(self, rank: int) -> list[list[Run]]:
        """Return the indices that a rank has along each axis."""
        here = self.root is None or rank == self.root
        return [[(0, n)] if here and n else [] for n in self.shape]

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of what a rank has."""
        here = self.root is None or rank == self.root
        return self.shape if here else (0,) * len(self.shape)


class Pieces:
    """Elements of one axis that ranks send each other, by the sender, or by the receiver.

    They count in the order of senders, and of each one in that of receivers.

    Parameters
    ----------
    counts : sequence of sequences of int
        How many each rank sends to each, itself too.
    received : bool
        Whether a rank has what it receives, in the order of senders; else what it sends.
    """

    def __init__(self, counts: Sequence[Sequence[int]], received: bool):
        ranks, ends = len(counts), list(accumulate(chain(*counts), initial=0))
        pieces = list(pairwise(ends))
        sent = [[run] for run in pairwise(ends[::ranks])]
        self._runs = [pieces[rank::ranks] for rank in range(ranks)] if received else sent

    def runs(self, rank: int) -> list[list[Run]]:
        """Return the indices that a rank has."""
        return [[(begin, end) for begin, end in self._runs[rank] if begin < end]]

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of what a rank has."""
        return (sum(end - begin for begin, end in self._runs[rank]),)


@dataclass(frozen=True)
class Slab:
    """One axis is cut into as many parts as there are ranks; see `slab`."""

    axis: int = 0
    lengths: tuple[int, ...] | None = None

    def layout(self, shape: Shape, ranks: int) -> Layout:
        """Return the layout of an array of this shape on so many ranks."""
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        if not 0 <= axis < len(shape):
            raise InvalidProblem(f"a slab along axis {self.axis} needs such an axis; {shape=}")
        splits = [Split(n) for n in shape]
        splits[axis] = Split(shape[axis], ranks, lengths=self.lengths)
        if self.lengths is not None and (
            len(self.lengths) != ranks or sum(self.lengths) != shape[axis] or min(self.lengths) < 0
        ):
            raise InvalidProblem(
                f"the lengths of {ranks} slabs must add up to {shape[axis]}, not {self.lengths}"
            )
        return Layout(tuple(splits))


@dataclass(frozen=True)
class Blocks:
    """Several axes are cut; see `blocks` and `block_cyclic`."""

    grid: tuple[int, ...]
    block: tuple[int, ...] | None = None

    def layout(self, shape: Shape, ranks: int) -> Layout:
        """Return the layout of an array of this shape on so many ranks."""
        if len(self.grid) != len(shape) or math.prod(self.grid) != ranks or min(self.grid) < 1:
            raise InvalidProblem(
                f"a grid for {len(shape)} axes and {ranks} ranks needs {len(shape)} numbers whose "
                f"product is {ranks}, not {self.grid}"
            )
        if self.block is None:
            splits = [Split(n, parts) for n, parts in zip(shape, self.grid, strict=True)]
        elif len(self.block) != len(shape) or min(self.block) < 1:
            raise InvalidProblem(f"a block needs {len(shape)} positive sizes, not {self.block}")
        else:
            splits = [
                Split(n, parts, block) if parts > 1 else Split(n)
                for n, parts, block in zip(shape, self.grid, self.block, strict=True)
            ]
        return Layout(tuple(splits))


Distribution: TypeAlias = Slab | Blocks


def slab(axis: int = 0, lengths: Sequence[int] | None = None) -> Slab:
    """Return the distribution that cuts one axis into a part for each rank.

    Parameters
    ----------
    axis : int
        Negative ones count from the end.
    lengths : sequence of int, optional
        How much of the axis each rank has; without it, as even as can be.
    """
    return Slab(int(axis), None if lengths is None else tuple(map(int, lengths)))


def blocks(grid: Sequence[int]) -> Blocks:
    """Return the distribution that cuts each axis into as many parts as `grid` says.

    With a 1 in it, its parts are the *pencils* of three-dimensional transforms.

    Parameters
    ----------
    grid : sequence of int
        A number for each axis; their product is the number of ranks.
    """
    return Blocks(tuple(map(int, grid)))


def block_cyclic(grid: Sequence[int], block: Sequence[int]) -> Blocks:
    """Return the distribution of ScaLAPACK: blocks of equal size go to the ranks of a grid in turn.

    Parameters
    ----------
    grid : sequence of int
        A number for each axis; their product is the number of ranks.
    block : sequence of int
        The shape of a block.
    """
    return Blocks(tuple(map(int, grid)), tuple(map(int, block)))


def as_distribution(given: Distribution | int | None) -> Distribution:
    """Return a distribution; an integer stands for ``slab(axis)``, and None for ``slab(0)``."""
    if isinstance(given, Slab | Blocks):
        return given
    return slab(0 if given is None else whole_number(given, "distribution"))


def common(one: Sequence[Run], other: Sequence[Run]) -> list[Run]:
    """Return the indices that are in both of two ascending lists of runs."""
    found: list[Run] = []
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            found.append((begin, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def places(runs: Sequence[Run], wanted: Sequence[Run], joined: bool = True) -> list[Run]:
    """Return where the `wanted` indices lie in a part that has `runs`, and all of them.

    There is a run for each one wanted, or with `joined` one for those that follow each other.
    """
    found: list[Run] = []
    i = before = 0
    for begin, end in wanted:
        while runs[i][1] <= begin:
            before += runs[i][1] - runs[i][0]
            i += 1
        start = before + begin - runs[i][0]
        if joined and found and found[-1][1] == start:
            found[-1] = (found[-1][0], start + end - begin)
        else:
            found.append((start, start + end - begin))
    return found
