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

from opencl_lab.core.plan import Argument, ceil_divide
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.local_schedule import ConvolutionPart, GroupPasses
from opencl_lab.ops.fft.passes.planner import RealForm
from opencl_lab.ops.fft.passes.splits import StepShape, middle_rows
from opencl_lab.ops.fft.passes.twiddles import (
    chirp,
    chirp_spectrum,
    local_twiddles,
    strided_twiddles,
)


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


# ------------------------------------------------ the arguments of a step

CONSTANTS = (
    "step_twiddle_lanes", "source_position", "source_lane", "target_position", "target_lane",
)  # fmt: skip
"""Arguments that follow from the length of rows; as constants, they make addresses simpler."""
UNUSED = {"outer": ("source_outer", "target_outer"), "batch": ("source_batch", "target_batch")}
"""Strides of axes that may have a single index."""


def tables_of(
    builder: PlanBuilder, step: Step, group: GroupPasses
) -> tuple[dict[str, Argument], int]:
    """Add the tables of a step; return them by name, and `LocalStep.step_twiddle_bits`."""
    n, dtype, schedule = group.n, builder.dtype, group.schedule
    count = schedule.twiddle_count
    tables: dict[str, Argument] = {
        "twiddles": builder.table("twiddles", count, dtype, local_twiddles, schedule.radices, dtype)
    }
    bits = 0
    if step.twiddles is not None:
        finer, bits = _step_twiddles(builder, step.twiddles)
        tables |= finer
    if step.real in ("r2c-packed", "c2r-packed"):
        tables["real_twiddles"] = builder.table(
            "real_twiddles", n, dtype, strided_twiddles, n, 1, 2 * n, dtype
        )
    if step.convolved is not None:
        length, back, m, part = step.convolved
        if part != "product":
            tables["chirp"] = builder.table("chirp", length, dtype, chirp, length, back, dtype)
        if part in ("whole", "product"):
            tables["chirp_spectrum"] = builder.table(
                "chirp_spectrum", m, dtype, chirp_spectrum, length, m, back, dtype
            )
    return tables, bits


def _step_twiddles(builder: PlanBuilder, twiddles: StepTwiddles) -> tuple[dict[str, Argument], int]:
    """Add two tables of about sqrt(order) entries, whose products are all powers."""
    order, dtype = twiddles.order, builder.dtype
    bits = order.bit_length() // 2
    sizes = {"high": (ceil_divide(order, 1 << bits), 1 << bits), "low": (1 << bits, 1)}
    tables: dict[str, Argument] = {}
    for half, (count, distance) in sizes.items():
        name = f"step_twiddles_{half}"
        tables[name] = builder.table(
            name, count, dtype, strided_twiddles, count, distance, order, dtype
        )
    return tables, bits


def numbers_of(step: Step) -> dict[str, int]:
    """Return the counts and distances of a step, in the order of the kernel's arguments."""
    layout, grid = step.layout, step.grid
    numbers = {} if step.twiddles is None else {"step_twiddle_lanes": step.twiddles.lanes}
    numbers |= {"outer": layout.outer, "lanes": layout.lanes}
    for side, strides, batch in (
        ("source", layout.source_strides, grid.source_stride),
        ("target", layout.target_strides, grid.target_stride),
    ):
        numbers |= {f"{side}_batch": batch, **strides.named(side)}
    return numbers


def constants_of(step: Step, of_rows: bool) -> dict[str, int]:
    """Return those of `numbers_of` that are no arguments, as each argument makes a launch slower.

    They are strides that are zero or of an axis with a single index, and with `of_rows`, where
    contiguous rows are transformed, what follows from their length.
    """
    numbers = numbers_of(step)
    one_outer, one_batch = step.layout.outer == 1, step.grid.count == 1
    unused = [*UNUSED["outer"] * one_outer, *UNUSED["batch"] * one_batch]
    known = ["outer"] * one_outer
    if of_rows:
        known += [name for name in CONSTANTS if name in numbers]
        known += ["lanes"] * (step.shape is not None)  # of one row; else the number of rows
    return dict.fromkeys(unused, 0) | {name: numbers[name] for name in known}
