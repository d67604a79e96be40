"""The overlapping blocks of a convolution by Fourier transforms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.fft.passes.factors import next_smooth

MULTIPLE = 16
"""Sides of blocks are multiples of it, so that transforms have whole vectors and few radices."""


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
