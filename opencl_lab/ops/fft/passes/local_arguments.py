"""The arguments of a step of the planner for GPUs: tables, counts, distances."""

from __future__ import annotations

from opencl_lab.core.plan import Argument, ceil_divide
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.local_schedule import GroupPasses
from opencl_lab.ops.fft.passes.steps import Step, StepTwiddles
from opencl_lab.ops.fft.passes.twiddles import (
    chirp,
    chirp_spectrum,
    local_twiddles,
    strided_twiddles,
)

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
