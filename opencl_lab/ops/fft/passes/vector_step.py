"""The geometry of transforms by explicit vectors, which templates emit.

An item does one *task* of a step at a time: a *block* of neighbouring transforms, or a single one,
in arrays that stay in the caches of its processor. Vectors have `width` lanes, used in one of two
ways.

Vectors over the *batch* hold the same position of `width` transforms. Lanes are independent, so
that a pass is the scalar code with vectors for numbers::

                    position 0     1      2          n-1
    transform 0             +---+  +---+  +---+      +---+
    transform 1             | v |  | v |  | v |  ..  | v |      vectors of 4 lanes,
    transform 2             | 0 |  | 1 |  | 2 |      |n-1|      each with real and
    transform 3             +---+  +---+  +---+      +---+      imaginary components apart

Vectors over the *points* hold `width` neighbouring positions of one transform. They are used for
rows whose radices allow it, as even a single row fills them. In the first pass the results of a
butterfly are neighbours, so that those of `width` butterflies are transposed in registers; from
then on neighbours are whole vectors::

                    position 0 1 2 3   4 5 6 7      .. n-1
    transform 0             +-------+ +-------+   +-------+
                            |   0   | |   1   | ..| n/4-1 |
                            +-------+ +-------+   +-------+

Source: for both, P. N. Swarztrauber, "FFT algorithms for vector computers", Parallel Computing,
1984; for short vectors within a transform also F. Franchetti, M. Püschel, "Short vector code
generation for the discrete Fourier transform", IPDPS 2003.

**Blocks.** The transforms of a batch are neighbours in memory if they are columns of a matrix.
`block` vectors side by side make longer runs of neighbours, which are loaded and stored together;
in between, each vector goes through its passes separately, in an array of its own::

    user's columns      | vector 0 | vector 1 | vector 2 |      one run of memory in each row
                             |          |          |            first pass: all vectors together
    arrays                  [1]        [2]        [3]
                           passes     passes     passes         one vector after the other
                             |          |          |            last pass: all together
    user's columns      | vector 0 | vector 1 | vector 2 |

**Arrays.** A pass cannot write where other butterflies of it still read, so passes alternate
between two arrays, 0 and 1. The last pass may write what it reads (its butterflies read and write
the same positions), and the user's memory is a third array::

    columns in, columns out        user -> 0 -> 1 -> 0 -> user        four passes
    rows in, rows out              user => 0 -> 1 -> 1 => user        two passes
                                        (=> rows become vectors over the batch, and back)

Each vector of a block has an array 0 (`array` vectors long, after `padding`, so that equal
positions of two of them are not in the same cache lines). They share one array 1, unless the last
pass, which goes over the whole block, reads arrays 1. Then the arrays are *chained*: the array 1 of
a vector is array 0 of the vector before it, which has gone on to its own array 1 by then::

    work     | free | vector 0 | vector 1 | vector 2 |
    array 0 of              0          1          2
    array 1 of   0          1          2                    if chained; else 0 to 2 share "free"
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.fft.passes.schedule import Pass, Schedule

CACHE_LINE = 64
PADDING = 9
"""Positions between the arrays of a block, which would compete for the same cache lines if their
lengths are powers of two."""

Fetch: TypeAlias = Literal["none", "source", "both"]
Side: TypeAlias = Literal["columns", "rows"]
"""The lanes of a vector are neighbours in memory ("columns" of a matrix), or from several "rows",
one each, which are transposed in registers."""
Tail: TypeAlias = Literal["none", "overlapping", "partial"]


@dataclass(frozen=True)
class Vectors:
    """How the points of some transforms lie in vectors."""

    # What the lanes of a vector are: transforms of the "batch", or "points" of one transform.
    over: Literal["batch", "points"]
    width: int  # lanes of a vector
    block: int  # vectors side by side in a task; 1 over the points
    # What happens if blocks do not divide the batch: the last one begins earlier ("overlapping")
    # and stores only what the one before it does not. If there are fewer transforms than lanes, the
    # only vector is "partial". Otherwise "none".
    tail: Tail
    active_lanes: int  # lanes that have a transform: fewer than all in a partial vector

    @classmethod
    def over_points(cls, width: int) -> Vectors:
        """Return vectors of neighbouring points: one transform is a task."""
        return cls("points", width, 1, "none", width)

    @classmethod
    def over_batch(cls, lanes: int, width: int, block: int = 1) -> Vectors:
        """Return vectors of neighbouring transforms, of which there are `lanes`."""
        if lanes % (width * block) == 0:
            return cls("batch", width, block, "none", width)
        partial = lanes <= width
        tail: Tail = "partial" if partial else "overlapping"
        return cls("batch", width, block, tail, lanes if partial else width)

    @property
    def positions(self) -> int:
        """Positions of one transform in a vector."""
        return self.width if self.over == "points" else 1

    @property
    def transforms(self) -> int:
        """Transforms of a full task."""
        return 1 if self.over == "points" else self.width * self.block

    @property
    def padding(self) -> int:
        """Positions between two arrays."""
        return 0 if self.over == "points" else PADDING

    def array(self, n: int) -> int:
        """Return how many vectors of complex numbers an array for length `n` has."""
        return n // self.positions + self.padding

    def blocks(self, lanes: int) -> int:
        """Return how many tasks there are for `lanes` neighbouring transforms."""
        return ceil_divide(lanes, self.transforms)

    def first_lanes(self, lanes: int) -> list[int]:
        """Return where blocks begin: the last one earlier if it would not be full."""
        last = max(lanes - self.transforms, 0)
        return [min(first, last) for first in range(0, lanes, self.transforms)]


@dataclass(frozen=True)
class VectorPass(Pass):
    """One pass of a step: what it reads and writes, counted in vectors."""

    # The arrays, 0 or 1; None: the user's memory.
    reads: int | None
    writes: int | None
    # Vectors between two inputs of a butterfly. (The first pass over the points does not use it, as
    # its inputs need not be whole vectors apart.)
    spacing: int
    # Vectors between two outputs of a butterfly: the stride in vectors. So many butterflies have
    # different twiddle factors.
    run: int
    runs: int  # how many such runs there are, all with the same twiddle factors
    step_twiddle_offset: int  # where its factors begin among the step twiddles, in vectors
    # What is prefetched in this pass: "source" (of the next task) or "target" (of this one).
    fetches: tuple[Literal["source", "target"], ...]

    @property
    def whole_block(self) -> bool:
        """Whether it does all vectors of a block together: it uses the user's memory."""
        return self.reads is None or self.writes is None


@dataclass(frozen=True)
class VectorStep:
    """Transforms of one length, which are one function of a kernel, as templates emit them."""

    # The passes. Over the points, the first radix is a multiple of the width, and the product of
    # the others at least the width.
    schedule: Schedule
    vectors: Vectors
    word: int  # bytes of a real number
    # How vectors lie in the user's memory: as "columns" or "rows". Over the points they are
    # neighbours in it, as in columns.
    load: Side
    store: Side
    # What passes prefetch: "none", the "source" of the next task, or "both" that and the target of
    # their own.
    fetch: Fetch = "none"
    # Whether this is the second step of a four-step transform: column p of the layout's `lanes` is
    # evaluated at frequencies k + p / lanes, so that each pass also multiplies by a factor that
    # depends on the column.
    step_twiddles: bool = False
    halved: bool = False  # whether numbers are halved when they are read
    scaled: bool = False  # whether results are multiplied by a factor

    sizes: ClassVar[tuple[str, ...]] = ()
    """The sizes that are arguments: none."""

    def __str__(self) -> str:
        vectors = self.vectors
        return (
            f"{self.schedule}, from {self.load} to {self.store}, in vectors of {vectors.width} "
            f"over the {vectors.over}"
        )

    @property
    def n(self) -> int:
        """Points of a transform."""
        return self.schedule.n

    @property
    def radices(self) -> tuple[int, ...]:
        """The radices of the passes, in order."""
        return self.schedule.radices

    @property
    def array(self) -> int:
        """Length of an array in vectors."""
        return self.vectors.array(self.n)

    @property
    def room(self) -> int:
        """Vectors of all arrays of an item: one array for each vector of a block, and one more."""
        return self.array * (self.vectors.block + 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of an item."""
        return self.room * self.vectors.width * 2 * self.word

    @property
    def fetch_lines(self) -> int:
        """Cache lines that a vector of complex numbers takes in the user's memory."""
        return max(2 * self.vectors.width * self.word // CACHE_LINE, 1)

    @property
    def step_twiddle_count(self) -> int:
        """Vectors of step twiddles that belong to each vector of transforms."""
        return sum(each.radix - 1 for each in self.schedule.passes)

    @property
    def whole_rows(self) -> bool:
        """Whether rows are transposed in squares of vectors: they are as long, and as many."""
        return self.n >= self.vectors.width and self.vectors.tail != "partial"

    def has_twiddles(self, one: VectorPass) -> bool:
        """Return whether a pass multiplies by factors."""
        return one.stride > 1 or self.step_twiddles

    @cached_property
    def passes(self) -> tuple[VectorPass, ...]:
        """The passes, in order."""
        arrays = _arrays(len(self.schedule.passes), self.load, self.store)
        found: list[VectorPass] = []
        for each, (reads, writes) in zip(self.schedule.passes, arrays, strict=True):
            found.append(
                VectorPass(
                    **{field.name: getattr(each, field.name) for field in fields(Pass)},
                    reads=reads,
                    writes=writes,
                    spacing=each.butterflies // self.vectors.positions,
                    run=max(each.stride // self.vectors.positions, 1),
                    runs=each.butterflies // each.stride,
                    step_twiddle_offset=sum(before.radix - 1 for before in found),
                    fetches=self._fetches(each.index),
                )
            )
        return tuple(found)

    def _fetches(self, index: int) -> tuple[Literal["source", "target"], ...]:
        """Return what a pass prefetches: the last the next source, the one before it the target."""
        last = len(self.schedule.passes) - 1
        if index == last and self.fetch != "none":
            return ("source",)
        return ("target",) if index == last - 1 and self.fetch == "both" else ()

    @property
    def opening(self) -> tuple[VectorPass, ...]:
        """The pass that reads the user's columns, if there is one, by all vectors of a block."""
        return tuple(each for each in self.passes if each.reads is None)

    @property
    def middle(self) -> tuple[VectorPass, ...]:
        """The passes from array to array, which each vector of a block goes through separately."""
        return tuple(each for each in self.passes if not each.whole_block)

    @property
    def closing(self) -> tuple[VectorPass, ...]:
        """The pass that writes the user's columns, unless it is the opening one."""
        return tuple(p for p in self.passes if p.writes is None and p.reads is not None)

    @property
    def chained(self) -> bool:
        """Whether array 1 of a vector is array 0 of the one before it, for the closing pass."""
        return any(each.reads == 1 for each in self.closing)


@dataclass(frozen=True)
class PointwiseStep:
    """A step before, between or after transforms, as `VectorStep` for a row without passes.

    Only items that do all steps have such steps; else they are launches of their own.
    """

    kind: Literal["halves", "chirp_in", "chirp_multiply", "chirp_out"]
    # Numbers of a row; of "halves", those of the packed signal; 0 if they are an argument, so that
    # lengths with the same convolution share a program.
    n: int
    width: int  # lanes of a vector
    inverse: bool = False  # of "halves": whether components are swapped, from spectrum to signal
    m: int = 0  # of "chirp_in": numbers of a row that is written, zero from `n` on; likewise
    rows: bool = True  # whether the numbers of the user are neighbours

    radices: ClassVar[tuple[int, ...]] = ()
    transforms: ClassVar[bool] = False
    step_twiddles: ClassVar[bool] = False
    fetch: ClassVar[Fetch] = "none"
    room: ClassVar[int] = 0
    nbytes: ClassVar[int] = 0

    def __str__(self) -> str:
        return f"{self.kind} of {self.n or 'any number of'} numbers, in vectors of {self.width}"

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are arguments, by name."""
        filled = self.kind == "chirp_in" and not self.m
        return (*["points"] * (not self.n), *["filled"] * filled)

    @property
    def vectors(self) -> Vectors:
        """One row is a task."""
        return Vectors.over_points(self.width)


def _arrays(count: int, load: Side, store: Side) -> list[tuple[int | None, int | None]]:
    """Return the arrays that each of `count` passes reads and writes; None is the user's."""
    found: list[tuple[int | None, int | None]] = []
    current = 0 if load == "rows" else None
    for index in range(count):
        reads = current
        if index < count - 1:
            current = 1 if current == 0 else 0
        elif store == "columns":
            current = None
        elif current is None:  # else the last pass writes what it reads
            current = 0
        found.append((reads, current))
    return found
