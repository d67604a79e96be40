"""The overlapping blocks of a convolution by Fourier transforms, and the recheck of their results.

The rounding error of a transform is relative to the largest pixel of two blocks times the largest
magnitude in the filter's spectrum; that of a direct sum is relative to the magnitudes of its own
products. Results below the bound that follows are checked again, and summed directly where that
does not help; the header of ``fft.cl.mako`` draws it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.fft.passes.factors import next_smooth

MULTIPLE = 16
"""Sides of blocks are multiples of it, so that transforms have whole vectors and few radices."""
ERROR = 16.0
"""Largest error of a result, in roundings of the largest pixel of its blocks times the largest
magnitude in the filter's spectrum. Noise of +-1 and a filter of one weight came to 12."""
ROWS = 4
"""Rows of results that an item sums directly at a time: their sums stay in registers."""


@dataclass(frozen=True)
class OverlapBlocks:
    """How the results are cut into blocks along both axes."""

    # Along y and x: blocks, valid results of a block, and its values with the overlap.
    count: tuple[int, int]
    valid: tuple[int, int]
    length: tuple[int, int]

    @classmethod
    def of(cls, problem: Conv2dProblem, block: int) -> OverlapBlocks:
        """Return blocks of about `block` values along each axis, all of the same size.

        They are longer where the filter is long, and shorter where the image is small.
        """
        axes = []
        for out, taps in zip(problem.result_shape[1:3], problem.filter_shape, strict=True):
            most = max(block, next_smooth(2 * taps, MULTIPLE))
            count = max(1, ceil_divide(out, most - taps + 1))
            valid = ceil_divide(out, count)
            axes.append((count, valid, next_smooth(valid + taps - 1, MULTIPLE)))
        counts, valids, lengths = zip(*axes, strict=True)
        return cls(counts, valids, lengths)

    def pairs(self, problem: Conv2dProblem) -> int:
        """Return how many pairs of blocks there are in all."""
        return ceil_divide(self.total(problem), 2)

    def total(self, problem: Conv2dProblem) -> int:
        """Return how many blocks there are in all."""
        return math.prod(self.count) * problem.batch * problem.channels

    @property
    def points(self) -> int:
        """Complex numbers of a pair of blocks."""
        return math.prod(self.length)

    def flops(self, problem: Conv2dProblem) -> float:
        """Return the arithmetic of all pairs: forward, product, and inverse."""
        each = self.points * (2 * 5 * math.log2(self.points) + 6)
        return each * (self.pairs(problem) + 0.5)  # the filter is transformed once


@dataclass(frozen=True)
class Recheck:
    """Which results are accurate enough, and how the others are marked and summed."""

    lanes: int  # neighbouring results that are checked together and share a mark
    rows: int  # rows of results that an item sums at a time
    # Marks of all blocks; tiles of `rows` rows in all blocks.
    marks: int
    tiles: int
    # The bound as a share of the largest pixel times the largest magnitude of the spectrum.
    share: float
    hidden: float  # a bound below which errors vanish in the last rounding

    @classmethod
    def of(cls, problem: Conv2dProblem, blocks: OverlapBlocks, wg_size: int) -> Recheck:
        """Return the recheck: single items check vectors; items of groups, single results."""
        lanes = 1 if wg_size > 1 else 64 // problem.sum_type.itemsize
        total, (valid_y, valid_x) = blocks.total(problem), blocks.valid
        taps = problem.filter_height * problem.filter_width
        eps = np.finfo(problem.sum_type).eps
        return cls(
            lanes=lanes,
            rows=ROWS,
            marks=total * valid_y * ceil_divide(valid_x, lanes),
            tiles=total * ceil_divide(valid_y, ROWS),
            share=2 * ERROR / taps,  # a direct sum has an error of taps * eps / 2 of its magnitudes
            # Integer results are rounded, so that an error of a quarter matters little.
            hidden=0.5 / (taps * eps) if problem.dtype.kind in "biu" else 0.0,
        )
