"""The recheck of doubtful pixels: where a transform may be less accurate than a direct sum.

The rounding error of a transform is relative to the largest pixel of two blocks times the largest
magnitude in the filter's spectrum; that of a direct sum is relative to the magnitudes of its own
products. Results below the bound that follows are checked again, and summed directly where that
does not help; the header of ``fft.cl.mako`` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.conv2d.blocks import OverlapBlocks
from opencl_lab.ops.conv2d.problem import Conv2dProblem

ERROR = 16.0
"""Largest error of a result, in roundings of the largest pixel of its blocks times the largest
magnitude in the filter's spectrum. Noise of +-1 and a filter of one weight came to 12."""
ROWS = 4
"""Rows of results that an item sums directly at a time: their sums stay in registers."""


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
