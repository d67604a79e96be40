"""How a work-group does the passes of its transforms: which item has which points, and where.

A group does `transforms` transforms of n points. `items` items share each of them: in a pass of
n / R butterflies, item j has butterflies j, j + items, j + 2 items and so on, one a round, and
keeps their points in registers. Between two passes all points go through local memory, where
transforms lie one after the other, or side by side where the result is columns. After every `gap`
elements one is left out, so that points a power of two apart are not all in one bank:

    point      0 1 2 3 4 5 6 7     8 9 ..         gap = 8
    element    0 1 2 3 4 5 6 7 (8) 9 10 ..

`GroupPasses` holds all that, and `LocalStep` adds the rest of what the template
``local_step.mako`` needs to emit the kernel of a step.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from opencl_lab.core.plan import ceil_divide, round_up
from opencl_lab.ops.fft.passes.schedule import Pass, Schedule

OWN_REGISTERS = 24
"""Registers of an item besides its points and roots of unity: places, pointers.

So AMD's compiler has it, within a third.
"""
BANKS = 32
"""Banks of local memory: the real numbers that can be read at once."""


def items_of(n: int, radices: tuple[int, ...], points: int) -> int:
    """Return the items of one transform.

    Each item has about `points` points, but at least a whole butterfly of the largest radix: 1,024
    points of radices 32, 32 have 32 items even if `points` is 4.
    """
    most = n // max(radices)
    return max(1, min(most, ceil_divide(n, points)))


def most_points(registers: int, word: int, multiplied: bool) -> int:
    """Return how many points of one butterfly an item of so many registers can have.

    `multiplied` says whether they are multiplied by other numbers than the roots of passes, too:
    by roots between two steps, or by a chirp.
    """
    return (registers - OWN_REGISTERS) // (word // 4 * (4 if multiplied else 3))


def gap_of(radix: int, transforms: int, load: str, store: str, exchange: str) -> int:
    """Return the elements of local memory between two that are left out, or 0 for no gaps.

    Items that load a row write the results of the first pass `radix` positions apart; a position
    takes `transforms` elements where columns are stored. The gap is the largest power of two that
    divides this distance, or the number of banks if that is larger: then neighbours are in
    different banks. Other numbers would cost a division. Where columns are loaded and stored,
    neighbouring items have neighbouring elements, and no gap is needed.
    """
    if load == store == "columns":
        return 0
    distance = radix * transforms if store == "columns" else radix
    power = distance & -distance
    banks = BANKS // 2 if exchange == "interleaved" else BANKS
    return max(banks, power) if power > 2 else 0


ConvolutionPart: TypeAlias = Literal["whole", "first", "product", "last"]
"""What a step does of a convolution: all of it; or of one that takes two steps there and two back,
the first one, the last one there, which multiplies by the transform of the chirp, or the last."""


@dataclass(frozen=True)
class GroupPasses:
    """The passes of one length as a work-group does them."""

    schedule: Schedule  # of each transform
    # Transforms of a group, and items of a transform.
    transforms: int
    items: int
    # How items read and write global memory: with "rows" neighbouring items have neighbouring
    # positions of a transform; with "columns", the same position of neighbouring transforms.
    load: str
    store: str
    # How points go through local memory: as complex numbers ("interleaved"); as real and imaginary
    # components in two arrays ("split"); or first all real ones and then all imaginary ones in one
    # array, which takes half the memory ("two-phase").
    exchange: str
    gap: int  # elements of local memory between two that are left out, 0 for none
    # Parts of the positions, which go through local memory one after the other, so that all of
    # these may be more than it holds. One if neighbouring rows share it.
    sections: int = 1

    @property
    def n(self) -> int:
        """Points of a transform."""
        return self.schedule.n

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes, in order."""
        return self.schedule.passes

    @property
    def work_group(self) -> int:
        """Items of the group."""
        return self.transforms * self.items

    def rounds(self, each: Pass) -> int:
        """Return the most butterflies of a pass that an item has."""
        return ceil_divide(each.butterflies, self.items)

    @property
    def points(self) -> int:
        """The most points of an item."""
        return max(self.rounds(each) * each.radix for each in self.passes)

    def registers(self, word: int, multiplied: bool = False) -> int:
        """Return about how many registers an item needs, with components of `word` bytes.

        `multiplied` is that of `most_points`.
        """
        roots = (2 if multiplied else 1) * max(self.schedule.radices)
        return OWN_REGISTERS + word // 4 * (2 * self.points + roots)

    def fills_rounds(self, each: Pass) -> bool:
        """Return whether every item has a butterfly in every round of a pass."""
        return each.butterflies % self.items == 0

    @property
    def numberings(self) -> tuple[tuple[str, str], ...]:
        """How items are numbered: as they "load", and from then on, as they "store".

        That is along "rows", or across "columns". A single pass is numbered as it loads, unless it
        stores columns.
        """
        alone = len(self.passes) == 1
        loads = self.store if alone and self.store == "columns" else self.load
        return (("load", loads),) if alone else (("load", loads), ("store", self.store))

    def numbering(self, each: Pass) -> str:
        """Return the numbering of items in a pass: that of loads in the first, else of stores."""
        return "store" if each.index else "load"

    @property
    def opposite_rounds(self) -> int:
        """The most pairs of opposite frequencies, k and n - k, that an item has."""
        return ceil_divide(self.n // 2 + 1, self.items)

    @property
    def section(self) -> int:
        """Positions of a section, all of them if there is one."""
        if self.sections == 1:
            return self.n
        return round_up(ceil_divide(self.n, self.sections), self.unit)

    @property
    def unit(self) -> int:
        """Positions of which sections are multiples.

        So whole butterflies are written to a section, the same points of every butterfly are read
        from it, which the compiler knows, and it ends at a gap.
        """
        written = [each.radix * each.stride for each in self.passes[:-1]]
        read = [each.butterflies for each in self.passes]
        gap = self.gap // math.gcd(self.gap, self.neighbours) if self.gap else 1
        return math.lcm(*written, *read, gap)

    @property
    def padded(self) -> int:
        """Elements of local memory for a section, gaps included."""
        size = self.section * self.transforms
        return size + (size // self.gap if self.gap else 0)

    @property
    def local_reals(self) -> int:
        """Real numbers in local memory; 0 if there is only one pass."""
        if len(self.passes) == 1:
            return 0
        return self.padded * (1 if self.exchange == "two-phase" else 2)

    @property
    def phases(self) -> tuple[tuple[str, int], ...]:
        """Components and section that go through local memory at a time.

        x is the real component, y the imaginary one.
        """
        components = ("x", "y") if self.exchange == "two-phase" else ("xy",)
        return tuple(itertools.product(components, range(self.sections)))

    @property
    def neighbours(self) -> int:
        """Elements of local memory between neighbouring positions of a transform, without gaps."""
        return self.transforms if self.store == "columns" else 1

    def together(self, count: int, distance: int) -> bool:
        """Return whether `count` points, so many positions apart, always lie between two gaps."""
        return bool(self.gap) and self.gap % (count * distance * self.neighbours) == 0


class Tiles(NamedTuple):
    """The groups of a step that do a part of it, where two steps share a launch.

    They are `strip` neighbours of every `pitch` groups, `groups` in all.
    """

    groups: int
    strip: int
    pitch: int


@dataclass(frozen=True)
class LocalStep:
    """One step of a transform as the template emits it within a launch."""

    group: GroupPasses
    # Of ``local_loads.mako``: "complex", "unaligned" (aligned to one real number only), or the form
    # of a real transform that reads in its own way.
    load_fragment: str
    store_fragment: str  # the same of ``local_stores.mako``
    # Names of the tables and the integers that are arguments of the kernel.
    tables: tuple[str, ...]
    numbers: tuple[str, ...]
    # Names and values of the integers that are compile-time constants instead.
    constants: tuple[tuple[str, int], ...]
    convolved: int  # 0, or the length of transforms that are done as convolutions
    convolution: ConvolutionPart | None  # what the step does of these
    # Whether numbers are halved when they are read, and scaled when they are written.
    halved: bool
    scaled: bool
    # Binary logarithm of the length of the finer of the two tables of step twiddles, or 0 if
    # results are not multiplied by any.
    step_twiddle_bits: int
    # Whether all transforms are neighbours, so that a group finds its own ones without a division.
    single_batch: bool
    partial_group: bool  # whether the last group has fewer transforms
    tiles: Tiles | None = None  # if two steps share the launch

    def __str__(self) -> str:
        group, part = self.group, self.convolution
        of = f"; {part} of a convolution for {self.convolved} points" if part else ""
        return (
            f"{group.schedule}, from {group.load} to {group.store}{of}; a group has "
            f"{group.transforms} x {group.items} items, exchange {group.exchange}"
        )

    def registers(self, word: int) -> int:
        """Return about how many registers an item needs, with components of `word` bytes."""
        multiplied = bool(self.step_twiddle_bits or self.convolution)
        return self.group.registers(word, multiplied)

    @property
    def chirps_loads(self) -> bool:
        """Whether the chirp multiplies what is read; positions past the row's end are zeros."""
        return self.convolution in ("whole", "first")

    @property
    def chirps_stores(self) -> bool:
        """Whether the chirp multiplies what is written; positions past the end are left out."""
        return self.convolution in ("whole", "last")

    @property
    def loaded(self) -> int:
        """Positions that are read; 0: all."""
        return self.convolved if self.chirps_loads else 0

    @property
    def length(self) -> int:
        """Points of the transforms; those of the convolution that computes them are more."""
        return self.convolved or self.group.n

    @property
    def stored(self) -> int:
        """Positions that are written; 0: all. Other frequencies of real signals mirror them."""
        if self.load_fragment == "r2c-full":
            return self.length // 2 + 1
        return self.convolved if self.chirps_stores else 0

    @property
    def packs_spectrum(self) -> bool:
        """Whether opposite frequencies are combined at the end, to those of a packed signal."""
        return self.store_fragment == "r2c-packed"

    def twiddle_spacing(self, radix: int) -> int:
        """Return the distance of those twiddle factors of a butterfly that are loaded.

        The others are products of these, about 2 sqrt(radix).
        """
        return max(2, round(math.sqrt(radix))) if radix >= 4 else 1
