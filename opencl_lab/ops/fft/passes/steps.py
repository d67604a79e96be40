"""The steps of a transform that is too long for one group: four-step transforms and longer ones.

A transform of n = n1 * n2 points is arranged as a matrix with rows of n2. Point j = j1 * n2 + j2
becomes frequency k = k1 + n1 * k2, for

    X[k] = sum over j2 of  w_n^(j2 k1) w_n2^(j2 k2) * sum over j1 of  w_n1^(j1 k1) x[j1 n2 + j2]

so that the first step transforms columns of length n1 and multiplies them by the *step twiddles*
w_n^(j2 k1), and the second one transforms rows of length n2 and writes them as columns. Between
them, y is in scratch memory:

    x [j1][j2]  --first step: columns to columns-->  y [k1][j2]
    y [k1][j2]  --second step: rows to columns---->  X [k2][k1]   the spectrum

(Bailey counts four: the multiplication and the transposition are steps of their own there.) With
three lengths the matrix becomes a box: each step but the last transforms one digit j of the
position to a digit k of the frequency in its place, and the last one writes the digits of the
frequency in reverse order. `passes.splits` chooses the lengths: on an H200, 2^20 points
have two steps of 1,024, and 2^24 points three of 128, 256 and 512. For 2^20 points, `steps_of`
returns, as element (o, p, c) at ``o * outer + p * position + c * lane``:

    step   n      lanes   reads: position, lane      writes: position, lane      times
    0      1024   1024    x: 1024, 1 (columns)       y: 1024, 1 (columns)        w_n^(p c)
    1      1024   1024    y: 1, 1024 (rows)          X: 1024, 1 (columns)

Source: D. H. Bailey, "FFTs in external or hierarchical memory", The Journal of Supercomputing 4,
1990.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.local_schedule import ConvolutionPart
from opencl_lab.ops.fft.passes.planner import RealForm
from opencl_lab.ops.fft.passes.splits import StepShape, middle_rows


class StepTwiddles(NamedTuple):
    """The factors between two steps: point p of lane c is multiplied by w_order^(p * (c // lanes)).

    `lanes` neighbours have the same factor: they are the same column of interleaved signals.
    """

    order: int
    lanes: int


class Convolved(NamedTuple):
    """Transforms that are done as convolutions, and what a step does of these."""

    n: int  # points of a transform
    inverse: bool
    m: int  # points of the convolution
    part: ConvolutionPart = "whole"


@dataclass(frozen=True)
class SlowestAxis:
    """The slowest axis of a launch: how often its layout repeats, and its strides."""

    count: int = 1
    source_stride: int = 0
    target_stride: int = 0


@dataclass(frozen=True)
class Step:
    """One step of a transform: where it reads and writes, and how it scales and multiplies."""

    layout: BatchedLayout
    grid: SlowestAxis = SlowestAxis()  # repetitions of the layout
    scale: float = 1.0  # factor of the results
    # The step twiddles by which results are multiplied, if another step follows.
    twiddles: StepTwiddles | None = None
    convolved: Convolved | None = None  # if transforms are convolutions of the layout's n
    real: RealForm | None = None  # which side is real, if any
    halved: bool = False  # whether numbers are halved when they are read

    @property
    def times(self) -> int:
        """Number of sets of neighbouring lanes."""
        return self.layout.outer * self.grid.count

    @property
    def orders(self) -> tuple[str, str]:
        """How items read and write, as `load` and `store` of a `GroupPasses` say."""
        layout = self.layout
        read, written = (
            "columns" if strides.lane == 1 and layout.lanes > 1 else "rows"
            for strides in (layout.source_strides, layout.target_strides)
        )
        return read, written

    @property
    def shape(self) -> StepShape | None:
        """What the cost depends on if columns are written, or None for rows."""
        load, store = self.orders
        if load == store == "rows":
            return None
        layout = self.layout
        read = layout.source_strides.position if load == store else 0
        pitch = math.gcd(layout.target_strides.position, read)
        return StepShape(layout.n, layout.lanes, self.times, load == "columns", pitch)


class _Array(NamedTuple):
    """An array between two steps: a row for each value of the `done` digits of the frequency.

    Rows are `pitch` elements apart, and transforms `size` elements.
    """

    name: str
    done: int
    pitch: int
    size: int


class _StepAxis(NamedTuple):
    """An axis of the last step: its length, and its strides in and out."""

    length: int
    source: int
    target: int


def steps_of(
    layout: BatchedLayout,
    lengths: tuple[int, ...],
    middles: list[str],
    scale: float,
    word: int,
    halved: bool,
) -> list[Step]:
    """Return the steps of transforms along the middle axis of contiguous arrays, outer x n x lanes.

    The product of `lengths`, two or for rows three, is n. Between the steps, points are in
    `middles`, one buffer or two that alternate, with rows of whole sectors.
    """
    n, inner = layout.n, layout.lanes
    array = _Array(layout.source, 1, n * inner, n * inner)
    steps: list[Step] = []
    middle = middle_rows(n, inner, lengths, word)
    for place, (length, (rows, pitch)) in enumerate(zip(lengths[:-1], middle, strict=True)):
        target = _Array(middles[place % 2], rows, pitch, rows * pitch)
        first = halved and not place
        steps.append(_columns(layout, length, array, target, first))
        array = target
    return [*steps, _last(layout, lengths, array, scale)]


def _columns(
    layout: BatchedLayout, length: int, array: _Array, target: _Array, halved: bool
) -> Step:
    """Return a step that transforms the first remaining digit of the position in place."""
    n, inner = layout.n, layout.lanes
    rest = n // target.done * inner
    columns = BatchedLayout(
        length, array.done, rest, array.name, target.name,
        Strides(array.pitch, rest, 1), Strides(length * target.pitch, target.pitch, 1),
    )  # fmt: skip
    grid = SlowestAxis(layout.outer, array.size, target.size)
    return Step(columns, grid, twiddles=StepTwiddles(n // array.done, inner), halved=halved)


def _last(layout: BatchedLayout, lengths: tuple[int, ...], array: _Array, scale: float) -> Step:
    """Return the last step, which reverses the digits of the frequency.

    It has an axis for the lanes and two more: that of the transforms, and one for a digit, of which
    rows have one left in three steps, and columns in two.
    """
    inner, done = layout.lanes, array.done
    axes = [_StepAxis(layout.outer, array.size, layout.n * inner)]
    before = 1
    for length in lengths[:-1]:
        before *= length
        axes.append(_StepAxis(length, array.pitch * (done // before), inner * (before // length)))
    # Neighbouring lanes are neighbours in the result: the user's lanes, or else k1.
    lanes = axes.pop(1) if inner == 1 else _StepAxis(inner, 1, 1)
    axes.sort(reverse=True)
    outer, repeated = axes if len(axes) > 1 else (*axes, _StepAxis(1, 0, 0))
    rows = BatchedLayout(
        lengths[-1], outer.length, lanes.length, array.name, layout.target,
        Strides(outer.source, inner, lanes.source),
        Strides(outer.target, done * inner, lanes.target),
    )  # fmt: skip
    return Step(rows, SlowestAxis(*repeated), scale)
