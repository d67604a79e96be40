"""Launches that transform rows on one compute unit by a program that most lengths share.

To build a program for a length takes 0.2 to 0.6 s, far longer than a call on one thread. So plans
for few rows have their lengths, strides and passes as numbers in memory: complex rows, real ones
with the step before or after their transform, and convolutions for lengths with large primes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import Argument, Launch, LocalMemory, passed_room
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep
from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.vector_step import PointwiseStep, Vectors, VectorStep

TEMPLATE = "fourier/fft_rows.cl.mako"
KERNEL = "fft_rows"
RADICES = {2: (3, 5), 4: (3, 5), 8: (2, 3, 4, 5, 6, 8), 16: (2, 3, 4, 5, 6, 8)}
"""Radices of all passes but the first, by the lanes of a vector. Narrow ones, whose programs build
in half the time, are for rows that fill no wider ones: what is left of their lengths is odd."""
LARGER = ((), (7,), (7, 11, 13))
"""Radices that programs have besides, the least that lengths need: these take long to build."""
LONGEST_LARGER = 1 << 12
"""Points of such a row; of more, a program for their length takes 0.9 of the time."""
MOST_ROWS = 3
"""Rows of a call, of one transform each; a program for their length takes less time for more."""
LONGEST_HALVES = 1 << 11
"""Complex numbers of a real row; of more, a program for their length takes 0.9 of the time."""
USER = 2
"""The place of the user's row, after those of the arrays 0 and 1."""


@dataclass(frozen=True)
class RowsStep:
    """What the program knows of a transform."""

    halved: bool  # whether numbers are halved when they are read
    source: int  # numbers from row to row, beyond its points
    target: int
    transforms: ClassVar[bool] = True


def rows_launch(
    builder: PlanBuilder, planned: Sequence[PlannedStep[Any]], inverse: bool, device: Device
) -> Launch | None:
    """Return a launch of steps by the shared program, or None if it is not for these."""
    transforms = [each.step for each in planned if isinstance(each.step, VectorStep)]
    rows = planned[0].arguments["lanes"]
    most = 1 if len(transforms) > 1 else MOST_ROWS
    if not transforms or not isinstance(rows, np.integer) or int(rows) > most:
        return None
    longest = max(step.n for step in transforms)
    room = 2 * longest * 2 * transforms[0].word
    if not all(map(_is_shared, planned)) or room > passed_room(device):
        return None
    if len(planned) == 2 and longest > LONGEST_HALVES:
        return None
    ends = [(each.arguments["source"], each.arguments["target"]) for each in planned]
    buffers = list(dict.fromkeys(buffer for pair in ends for buffer in pair))
    index = builder.index(*(builder.elements(str(buffer)) for buffer in buffers))
    width = transforms[0].vectors.width
    params = {
        "ELEMENT": builder.element,
        "INDEX_T": c_type(index),
        "VECTOR_WIDTH": width,
        "INVERSE": inverse,
        "RADICES": _radices_of(transforms, width),
        "ROWS": tuple(map(_known, planned)),
        "BUFFERS": tuple(tuple(map(buffers.index, pair)) for pair in ends),
        "STEPS": tuple(each.step for each in planned),
    }
    arguments: dict[str, Argument] = {f"buffer_{b}": buffer for b, buffer in enumerate(buffers)}
    for number, each in enumerate(planned):
        made = _of_transform if isinstance(each.step, VectorStep) else _of_row
        arguments |= {
            f"{name}_{number}": index(value) if isinstance(value, np.unsignedinteger) else value
            for name, value in made(builder, each).items()
        }
    arguments |= {"rows": index(rows), "space": LocalMemory(room)}
    return Launch(TEMPLATE, KERNEL, params, (1,), (1,), arguments)


def _is_shared(planned: PlannedStep[Any]) -> bool:
    """Return whether the program can do a step of a few rows."""
    step, given = planned.step, planned.arguments
    if given["source_position"] != 1 or given["target_position"] != 1 or given["outer"] != 1:
        return False
    if isinstance(step, PointwiseStep):
        return True
    first, *others = step.radices
    over_points = step.vectors.over == "points" and first == step.vectors.width
    if not over_points or step.fetch != "none":
        return False
    return set(others) <= {*RADICES[first], *(LARGER[-1] if step.n <= LONGEST_LARGER else ())}


def _radices_of(transforms: Sequence[VectorStep], width: int) -> tuple[int, ...]:
    """Return the radices of a program, all passes but the first, that can do some transforms."""
    needed = {radix for step in transforms for radix in step.radices[1:]}
    programs = (RADICES[width] + more for more in LARGER)
    return next(radices for radices in programs if needed <= set(radices))


def _known(planned: PlannedStep[Any]) -> RowsStep | PointwiseStep:
    """Return what the program knows of a step: not its length."""
    step, given = planned.step, planned.arguments
    if isinstance(step, PointwiseStep):
        return replace(step, n=0, m=0)
    source, target = given["source_lane"], given["target_lane"]
    assert isinstance(source, np.integer) and isinstance(target, np.integer)
    return RowsStep(step.halved, int(source) - step.n, int(target) - step.n)


def _of_transform(builder: PlanBuilder, planned: PlannedStep[VectorStep]) -> dict[str, Argument]:
    """Return the arguments of a transform, in the order of the kernel's parameters."""
    step, given = planned.step, planned.arguments
    count, words = len(step.passes), np.dtype(np.uint32)
    numbers = (pass_numbers, step.schedule, step.vectors.width)
    return {
        "passes": builder.table("passes", 7 * count, words, *numbers),
        "twiddles": given["twiddles"],
        "count": np.uint32(count),
        "points": np.uint32(step.n),
        "scale": given["scale"],
    }


def _of_row(builder: PlanBuilder, planned: PlannedStep[PointwiseStep]) -> dict[str, Argument]:
    """Return the arguments of a step of one row, with the sizes that its program does not know."""
    given, step = dict(planned.arguments), planned.step
    of_step = {"points": np.uint32(step.n), "filled": np.uint32(step.m)}
    scale = given.pop("scale")
    del given["source"], given["target"]
    sizes = {name: given.get(name, of_step[name]) for name in replace(step, n=0, m=0).sizes}
    return {**given, **sizes, "scale": scale}


def pass_numbers(schedule: Schedule, width: int) -> np.ndarray[Any, Any]:
    """Return what the kernel reads of each pass, in the order of its structure `pass_t`."""
    step = VectorStep(schedule, Vectors.over_points(width), 4, "columns", "columns")
    rows = [
        (
            each.radix,
            each.run,
            each.runs,
            each.spacing,
            each.reads or 0,
            USER if each.writes is None else each.writes,
            each.twiddle_offset // width,
        )
        for each in step.passes
    ]
    return np.array(rows, np.uint32).reshape(-1)
