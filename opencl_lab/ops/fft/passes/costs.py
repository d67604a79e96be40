"""Estimated costs of transforms on a CPU, by which a plan is chosen.

An estimate counts what a launch does with each point, in nanoseconds of one compute unit whose
vectors have 32 bytes::

    a point of one step  =   for each pass:  arithmetic of its butterflies      FLOP
                                           + reading and writing, from the
                                             cache that holds a task's arrays   MOVE * LEVELS
                           + rows that are transposed on the way in or out      TRANSPOSE
                           + columns of a matrix, in or out                     STRIDED
                           + a second step's twiddle factors                    STEP_TWIDDLE

The time is that of the unit with the most tasks; lanes without a transform cost as much as others.
The coefficients are fitted to a few measured transforms on two cores; they need to order
plans, not to predict times. The tuning database overrides the choice (``SPLIT``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.fft.passes.factors import pairs_of, radices_of

LAUNCH = 12_000.0
"""Nanoseconds of overhead of a launch."""
MEETING = 2_000.0
"""Nanoseconds for the units of a fused launch to go on to its second step."""
FLOP = 0.013
"""Nanoseconds of one operation of a butterfly on one point, in single precision."""
MOVE = 0.10
"""Nanoseconds to read and write a point in a pass, in the L1 cache."""
LEVELS = ((48 << 10, 1.0), (256 << 10, 1.3), (768 << 10, 1.8), (2 << 20, 4.0))
"""Pairs: up to so many bytes of a task's arrays, a move costs so many times `MOVE`; for larger
arrays, `FAR` times."""
FAR = 6.0
CACHED = 2 << 20
"""Bytes per unit that a launch may read and write within caches."""
STEP_TWIDDLE = 0.3
"""Nanoseconds to multiply a point by its step twiddles, in the passes of the second step."""
TRANSPOSE = 0.45
"""Nanoseconds per point to transpose rows in registers, as they are loaded or stored."""
STRIDED = 0.1
"""Nanoseconds per point to read or write columns of a matrix instead of rows."""


@dataclass(frozen=True)
class StepCost:
    """What the cost of a step depends on."""

    n: int  # points of a transform
    count: int  # transforms
    radices: tuple[int, ...]  # of the passes
    # Whether lanes are points of one transform, not of several transforms.
    over_points: bool = False
    block: int = 1  # vectors side by side
    # Whether the passes also multiply by the twiddle factors between the steps.
    step_twiddles: bool = False
    # How many of input and output (0 to 2) are rows that are transposed into vectors over the
    # batch, and how many are columns of a matrix.
    transposed: int = 0
    strided: int = 0


@dataclass(frozen=True)
class CostModel:
    """What costs depend on besides the transforms: the configuration and the device."""

    width: int  # lanes of a vector
    block: int  # vectors of columns side by side
    max_radix: int  # largest composite radix
    word: int  # bytes of a real number
    units: int  # compute units
    fused: bool  # whether one launch does both steps of a transform

    def nanoseconds(self, step: StepCost) -> float:
        """Return the estimated time of a launch of one step."""
        lanes = 1 if step.over_points else self.width
        tasks = ceil_divide(step.count, lanes)
        points = step.n * lanes * ceil_divide(tasks, self.units)
        held = 2 * step.n * lanes * (step.block + 1) * self.word  # the arrays of a task
        move = MOVE * next((factor for limit, factor in LEVELS if held <= limit), FAR)
        each = sum(FLOP * operations(radix) + move for radix in step.radices)
        each += (
            STEP_TWIDDLE * step.step_twiddles + TRANSPOSE * step.transposed + STRIDED * step.strided
        )
        return LAUNCH + points * each * self.word / 4

    def two_steps(self, n1: int, n2: int, count: int) -> float:
        """Return the estimated time of both steps of `count` transforms of length n1 * n2."""
        first = StepCost(
            n1, n2 * count, radices_of(n1, self.max_radix), block=self.block,
            transposed=1, strided=1,
        )  # fmt: skip
        second = StepCost(
            n2, n1 * count, radices_of(n2, self.max_radix), block=self.block,
            step_twiddles=True, strided=2,
        )  # fmt: skip
        cost = self.nanoseconds(first) + self.nanoseconds(second)
        meeting = MEETING if self.units > 1 else 0.0
        return cost - (LAUNCH - meeting) * self.fused


def worth_fetching(
    moved: int, held: int, columns: bool, units: int
) -> Literal["none", "source", "both"]:
    """Return what the items of a launch should prefetch: none, source or both.

    A step reads and writes `moved` bytes, and the arrays of a task have `held` bytes; columns of a
    matrix may be written. The hardware prefetches one long run of addresses, and a task has many
    short ones. There is nothing to gain where caches hold all that a launch moves. Columns that are
    written lie far apart: they compete for the same cache lines, unless the arrays of a task are
    small.
    """
    if moved <= CACHED * units:
        return "none"
    return "source" if columns and held > LEVELS[0][0] else "both"


def operations(radix: int) -> float:
    """Return the operations per point of a butterfly and its twiddle factors."""
    # fmt: off
    alone = {
        1: 0, 2: 2, 3: 5, 4: 4, 5: 8, 6: 8, 7: 12, 8: 7, 9: 11, 10: 11, 11: 20, 12: 10, 13: 24,
        14: 15, 15: 14, 16: 11, 20: 13, 21: 18, 25: 17, 27: 17, 32: 14,
    }
    # fmt: on
    return alone.get(radix, 2 * (radix - 1)) + 4.0


@lru_cache(maxsize=4096)
def best_split(
    model: CostModel, n: int, count: int, longest: int
) -> tuple[float, tuple[int, int] | None]:
    """Return the estimated time of the best transform in two steps, and their lengths.

    If there is no split into steps of at most `longest` points, the time is infinite and the second
    value None.
    """
    best: tuple[float, tuple[int, int] | None] = (float("inf"), None)
    # The second step reads and writes columns: it gets the shorter length.
    for n2, n1 in pairs_of(n):
        if max(n1, n2) <= longest:
            cost = model.two_steps(n1, n2, count)
            best = min(best, (cost, (n1, n2)), key=lambda found: found[0])
    return best
