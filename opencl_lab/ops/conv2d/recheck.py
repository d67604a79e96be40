"""The recheck of doubtful pixels: where a transform may be worse than a direct sum.

Rounding of a transform is relative to the largest pixel of two blocks times the largest magnitude
in the spectrum of the filter, that of a direct sum to the magnitudes of its own products. Results
below the bound that follows are looked at again, and summed directly where that does not help; the
header of ``fft.cl.mako`` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.conv2d.blocks import Blocks
from opencl_lab.ops.conv2d.problem import Conv2dProblem

ERROR = 16.0
"""Roundings by which a result is off at most, of the largest pixel of its blocks times the largest
magnitude in the spectrum of the filter. Noise of +-1 and a filter of one weight came to 12."""
ROWS = 4
"""Rows of results that an item sums anew together: their sums stay in registers."""


@dataclass(frozen=True)
class Recheck:
    """Which results are trusted, and how the others are marked and summed."""

    lanes: int  # results beside each other that are judged together, and share a mark
    rows: int  # rows of results that an item sums together
    # Marks of all blocks; tiles of `rows` rows in all blocks.
    marks: int
    tiles: int
    # The bound as a share of the largest pixel times the largest magnitude of the spectrum.
    share: float
    hidden: float  # a bound up to which errors vanish in the last rounding

    @classmethod
    def of(cls, problem: Conv2dProblem, blocks: Blocks, wg_size: int) -> Recheck:
        """Return that of a problem: single items judge vectors, items of a group single results."""
        lanes = 1 if wg_size > 1 else 64 // problem.sum_type.itemsize
        total, (valid_y, valid_x) = blocks.total(problem), blocks.valid
        taps = problem.filter_height * problem.filter_width
        eps = np.finfo(problem.sum_type).eps
        return cls(
            lanes=lanes,
            rows=ROWS,
            marks=total * valid_y * ceil_divide(valid_x, lanes),
            tiles=total * ceil_divide(valid_y, ROWS),
            share=2 * ERROR / taps,  # as a direct sum is off by taps * eps / 2 of its magnitudes
            # A quarter more or less matters little to what becomes a whole number.
            hidden=0.5 / (taps * eps) if problem.dtype.kind in "iu" else 0.0,
        )
