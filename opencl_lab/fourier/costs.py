"""What transforms are likely to cost on a CPU: how a plan is chosen before any is run.

An estimate counts what a launch does with each point, in nanoseconds of one compute unit that
works on vectors of `VECTOR` bytes: arithmetic of the butterflies, reading and writing once a
pass, from the cache that holds what a pass goes through, and what is done on the way in and
out. The coefficients are fits to a few measured transforms on two cores; they need to order
plans, not to foretell times. The tuning database overrides the choice (``SPLIT``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from opencl_lab.fourier.factors import pairs_of, radices_of

__all__ = ["LAUNCH", "Shape", "best_split", "nanoseconds", "worth_fetching"]

LAUNCH = 12_000.0
"""Nanoseconds of a launch, until its units work and after they do."""
MEETING = 2_000.0
"""Nanoseconds until the units of a launch go on to its second step."""
VECTOR = 32
FLOP = 0.013
"""Of an operation of a butterfly on one point, in single precision."""
MOVE = 0.10
"""Reading and writing a point in a pass, out of the nearest cache."""
LEVELS = ((48 << 10, 1.0), (256 << 10, 1.3), (768 << 10, 1.8), (2 << 20, 4.0))
"""Up to so many bytes of work a task, a move costs so many times as much; then `FAR`."""
FAR = 6.0
CACHED = 2 << 20
"""Bytes of what a launch reads and writes that a unit may find in its caches."""
TURN = 0.3
"""Multiplying a point by the root between two steps, in the passes of the second."""
TRANSPOSE = 0.45
"""Turning rows into columns in registers, on the way in or out."""
STRIDED = 0.1
"""Reading or writing columns of a matrix in place of rows."""


@dataclass(frozen=True)
class Shape:
    """What a cost depends on in a launch of `fft_vector`.

    Parameters
    ----------
    n : int
        Points of a transform.
    count : int
        Transforms.
    radices : tuple of int
        Of the passes.
    width : int
        Lanes of a vector.
    within : bool
        Whether lanes are positions of one transform, and not several transforms.
    word : int
        Bytes of a real number.
    block : int
        Vectors side by side.
    turned : bool
        Whether the roots between steps are part of the passes.
    transposed, strided : int
        How many of the two ends are rows that become vectors of transforms, and how many
        are columns of a matrix.
    """

    n: int
    count: int
    radices: tuple[int, ...]
    width: int
    within: bool
    word: int
    block: int = 1
    turned: bool = False
    transposed: int = 0
    strided: int = 0


def nanoseconds(shape: Shape, units: int) -> float:
    """Return the estimated time of a launch on so many compute units."""
    lanes = 1 if shape.within else shape.width
    tasks = -(-shape.count // lanes)
    # Units wait for the one with the most tasks; lanes without a transform work all the same.
    points = shape.n * lanes * -(-tasks // units)
    held = 2 * shape.n * lanes * (shape.block + 1) * shape.word  # the arrays of a task
    move = MOVE * next((factor for limit, factor in LEVELS if held <= limit), FAR)
    each = sum(FLOP * _operations(radix) + move for radix in shape.radices)
    each += TURN * shape.turned + TRANSPOSE * shape.transposed + STRIDED * shape.strided
    return LAUNCH + points * each * shape.word / 4


def worth_fetching(moved: int, held: int, columns: bool, units: int) -> str:
    """Return what the items of a launch had better fetch ahead: none, source or both.

    A processor foresees one long run of addresses, and a task has many short ones. Nothing is
    gained where the caches hold all that a launch moves. Columns that are written lie far
    apart: they fight for the same lines of a cache, unless they are few.

    Parameters
    ----------
    moved, held : int
        Bytes that are read and written by a step, and of the arrays of a task.
    columns : bool
        Whether columns of a matrix are written.
    units : int
        Compute units that share the work.
    """
    if moved <= CACHED * units:
        return "none"
    return "source" if columns and held > LEVELS[0][0] else "both"


def _operations(radix: int) -> float:
    """Return the additions and multiplications for each point of a butterfly and its roots."""
    # fmt: off
    alone = {
        1: 0, 2: 2, 3: 5, 4: 4, 5: 8, 6: 8, 7: 12, 8: 7, 9: 11, 10: 11, 11: 20, 12: 10, 13: 24,
        14: 15, 15: 14, 16: 11, 20: 13, 21: 18, 25: 17, 27: 17, 32: 14,
    }
    # fmt: on
    return alone[radix] + 4.0


@lru_cache(maxsize=4096)
def best_split(
    n: int,
    count: int,
    width: int,
    block: int,
    largest: int,
    word: int,
    units: int,
    longest: int,
    joined: bool,
) -> tuple[float, tuple[int, int] | None]:
    """Return the estimate of the best transform in two steps, and its columns and rows.

    `largest` is the largest composite radix, `longest` the longest step, and `joined` says
    whether one launch does both. Without a split that keeps to it, the estimate is
    infinite and the second value None.
    """
    best: tuple[float, tuple[int, int] | None] = (float("inf"), None)
    # The second step reads and writes columns: it gets the shorter ones.
    for rows, columns in pairs_of(n):
        if max(columns, rows) > longest:
            continue
        first = Shape(
            columns, rows * count, radices_of(columns, largest), width, False, word, block,
            transposed=1, strided=1,
        )  # fmt: skip
        second = Shape(
            rows, columns * count, radices_of(rows, largest), width, False, word, block,
            turned=True, strided=2,
        )  # fmt: skip
        cost = nanoseconds(first, units) + nanoseconds(second, units)
        cost -= (LAUNCH - MEETING) * joined
        best = min(best, (cost, (columns, rows)), key=lambda found: found[0])
    return best
