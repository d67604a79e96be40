"""The strip of the result that an item of ``conv2d_register`` has in its registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opencl_lab.core.space import Config
from opencl_lab.ops.conv2d.pixels import FilterPass
from opencl_lab.ops.conv2d.problem import Conv2dProblem

OWN_REGISTERS, COPIES = 42, 2
"""Registers of an item besides its sums and the values under them; and how often it has these: as
they are loaded, and converted."""


@dataclass(frozen=True)
class Strip:
    """The geometry of an item and its work-group, by which ``register.cl.mako`` is rendered."""

    taps: tuple[int, int]  # rows and columns of the filter; zeros where these are arguments
    channels: int  # values of a pixel
    # Values of a vector, and vectors side by side, of an item.
    vector_width: int
    vectors: int
    unroll: int  # taps of a row that are unrolled
    piece: int  # values that are converted at once
    rows: int = 1  # rows of results of an item
    # Items of a work-group along a row and across rows.
    wg_x: int = 1
    wg_y: int = 1
    several: bool = True  # whether an item computes several blocks in a loop
    window: bool = False  # whether the values under a vector stay in registers for all taps
    align: int = 1  # values that a window loads and stores at once; 1 where rows are not aligned
    shift: int = 0  # offset of the first result's window in a piece of `align` values

    @classmethod
    def of(cls, problem: Conv2dProblem, one: FilterPass, config: Config) -> Strip:
        """Return the strips of a pass in a configuration."""
        number = config.integer
        steps = number("STEPS_X"), number("STEPS_Y")
        width, align = number("VECTOR_WIDTH"), _aligned(problem, one, config)
        return cls(
            # Short filters are unrolled, as loops would take longer than their few products.
            taps=one.taps if config["WINDOW"] or one.taps[0] < number("ROWS") else (0, 0),
            channels=problem.channels,
            wg_x=number("WG_X"),
            wg_y=number("WG_Y"),
            vector_width=width,
            vectors=number("VECTORS"),
            rows=number("ROWS"),
            # Whatever their number, so that images of all sizes share a program.
            several=not config["WINDOW"] or steps != (1, 1),
            unroll=number("UNROLL"),
            window=bool(config["WINDOW"]),
            align=align,
            shift=one.offset[1] * problem.channels % align,
            piece=piece_of(problem, width),
        )

    @property
    def apart(self) -> int:
        """Values from one vector of an item to the next: items' vectors alternate."""
        return self.wg_x * self.vector_width

    @property
    def width(self) -> int:
        """Values of a row between the first and the last of an item, both included."""
        return (self.vectors - 1) * self.apart + self.vector_width

    @property
    def written_out(self) -> int:
        """Taps of a row that are summed before the next values are loaded."""
        return self.unroll if self.sized else min(self.taps[1], self.unroll)

    @property
    def strips(self) -> int:
        """Segments of a row that an item loads at an edge; adjacent vectors share one."""
        return 1 if self.wg_x == 1 else self.vectors

    @property
    def collected(self) -> int:
        """Values of such a segment."""
        beside = self.vectors // self.strips
        return beside * self.vector_width + (self.written_out - 1) * self.channels

    def registers(self, word: int) -> int:
        """Return about how many registers an item needs, with sums of `word` bytes."""
        sums = self.rows * self.vectors * self.vector_width
        return OWN_REGISTERS + word // 4 * (sums + COPIES * self.collected)

    @property
    def sized(self) -> bool:
        """Whether the size of the filter is an argument of the kernel."""
        return self.taps == (0, 0)

    def pairs(self, r: int) -> list[tuple[int, int]]:
        """Return the pairs (row of results, row of the filter) of row `r` of the image."""
        most = self.rows if self.sized else self.taps[0]
        return [(o, r - o) for o in range(self.rows) if 0 <= r - o < most]

    def last_pairs(self, r: int) -> list[tuple[int, int | str]]:
        """Return those of one of the last rows, which is counted from `taps` on if `sized`."""
        if self.sized:
            return [(o, f"filter_height + {r - o}") for o in range(r + 1, self.rows)]
        return [*self.pairs(r)]

    @property
    def loops(self) -> bool:
        """Whether a loop goes over the rows of the image that add to all rows of results."""
        return self.sized or (self.taps[0] >= self.rows and self.taps[0] > 3)

    @property
    def first_rows(self) -> range:
        """Rows of the image before that loop, or all rows if there is none; unrolled."""
        return range(self.rows - 1 if self.loops else self.taps[0] + self.rows - 1)

    @property
    def last_rows(self) -> range:
        """Rows of the image after that loop."""
        return range(self.taps[0], self.taps[0] + self.rows - 1) if self.loops else range(0)


def piece_of(problem: Conv2dProblem, width: int) -> int:
    """Return how many values of a vector one call converts: PoCL 3.0 takes no 64 bytes there."""
    return min(width, 4 if problem.sum_type.itemsize == 8 else 8)


def _aligned(problem: Conv2dProblem, one: FilterPass, config: Config) -> int:
    """Return the alignment of rows in elements, given aligned buffers; 1: not aligned."""
    types = {one.source_type, one.target_type}
    if types & {np.dtype(np.float16), np.dtype(bool)}:  # there are no vectors of these
        return 1
    align = min(4, max(1, 16 // max(dtype.itemsize for dtype in types)))
    rows = (one.size[1] * problem.channels, one.out_size[1] * problem.channels)
    whole = all(length % align == 0 for length in (*rows, config.integer("VECTOR_WIDTH")))
    written_out = one.taps[1] <= config.integer("UNROLL")
    return align if config["WINDOW"] and whole and written_out else 1
