"""The passes of one transform, which planners and templates use.

A transform of n = R0 * R1 * ... points is a sequence of passes. Pass s has n / R_s butterflies of
R_s points each, all independent of each other. In Stockham's order of the points, the last pass
leaves them sorted. In a pass of radix R, with S the product of the radices before it, butterfly j

    reads        positions  j + i * n / R,                              i < R
    multiplies   point i by the twiddle factor  w_(S R)^(i * (j mod S))
    writes       positions  (j div S) * S * R + (j mod S) + i * S

Here w_m is exp(-2 pi sqrt(-1) / m). S is also the distance between the points that a butterfly
writes: the *stride* of the pass. In the first pass S is 1, so that all twiddle factors are 1 and
none are stored; those of the other passes are in one table, pass by pass. For 1,024 points of
radices 16, 8, 8:

    pass   radix   stride   butterflies   twiddles   from
    0      16      1        64            0          0
    1      8       16       128           7 * 16     0
    2      8       128      128           7 * 128    112

Source: Stockham's autosort algorithm (W. T. Cochran et al., "What is the fast Fourier transform?",
1967), as given for GPUs by N. K. Govindaraju et al., "High performance discrete Fourier transforms
on graphics processors", SC 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Pass:
    """One pass over all points of a transform."""

    index: int  # its place in the schedule
    radix: int  # points of a butterfly
    stride: int  # distance of a butterfly's outputs: the product of the radices before
    butterflies: int  # their number, which is also the distance of a butterfly's inputs
    twiddle_offset: int  # where its twiddle factors begin in the table, in complex numbers

    @property
    def twiddle_count(self) -> int:
        """Number of twiddle factors in the table: none in the first pass, where all are 1."""
        return self.stride * (self.radix - 1) if self.index else 0


@dataclass(frozen=True)
class Schedule:
    """All passes of a transform of length `n`, in order."""

    n: int
    passes: tuple[Pass, ...]

    def __str__(self) -> str:
        return f"{self.n} points in passes of radix {', '.join(map(str, self.radices))}"

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, radices: tuple[int, ...]) -> Schedule:
        """Return the schedule of passes with these radices, whose product is the length."""
        n, stride, offset = math.prod(radices), 1, 0
        passes: list[Pass] = []
        for index, radix in enumerate(radices):
            passes.append(Pass(index, radix, stride, n // radix, offset))
            offset += passes[-1].twiddle_count
            stride *= radix
        return cls(n, tuple(passes))

    @property
    def radices(self) -> tuple[int, ...]:
        """The radices of the passes, in order."""
        return tuple(each.radix for each in self.passes)

    @property
    def twiddle_count(self) -> int:
        """Number of twiddle factors of all passes."""
        return sum(each.twiddle_count for each in self.passes)

    @property
    def last(self) -> Pass:
        """The pass that writes the result."""
        return self.passes[-1]
