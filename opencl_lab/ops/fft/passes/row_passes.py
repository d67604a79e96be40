"""Launches that transform rows on one compute unit by a program that most lengths share.

To build a program for a length takes 0.2 to 0.4 s, far longer than a call on one thread. So plans
of one step for few rows, with vectors over the points, have their lengths and passes as numbers in
memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import Launch, LocalMemory, passed_room
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep
from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.vector_step import Vectors, VectorStep

TEMPLATE = "fourier/fft_rows.cl.mako"
KERNEL = "fft_rows"
RADICES = (2, 3, 4, 5, 6, 8)
"""Radices of all passes but the first."""
MOST_ROWS = 3
"""Rows of a call; of more, a program for their length takes less time for each."""
USER = 2
"""The place of the user's row, after those of the arrays 0 and 1."""


def rows_launch(
    builder: PlanBuilder, planned: PlannedStep[Any], inverse: bool, device: Device
) -> Launch | None:
    """Return a launch of one step by the shared program, or None if it is not for this step."""
    step, given = planned.step, planned.arguments
    if not isinstance(step, VectorStep) or step.vectors.over != "points":
        return None
    n, width = step.n, step.vectors.width
    shared = step.radices[0] == width and set(step.radices[1:]) <= set(RADICES)
    contiguous = given["source_lane"] == given["target_lane"] == n and given["outer"] == 1
    lanes = given["lanes"]
    few = isinstance(lanes, np.integer) and int(lanes) <= MOST_ROWS
    apart = given["source"] != given["target"]
    room = 2 * (n // width) * width * 2 * step.word
    plain = not step.halved and step.fetch == "none" and room <= passed_room(device)
    if not (shared and contiguous and few and apart and plain):
        return None
    params = {
        "ELEMENT": builder.element,
        "INDEX_T": c_type(planned.index),
        "VECTOR_WIDTH": width,
        "INVERSE": inverse,
        "RADICES": RADICES,
        "STEPS": (step,),
    }
    words = np.dtype(np.uint32)
    arguments = {
        "source": given["source"],
        "target": given["target"],
        "passes": builder.table(
            "passes", 7 * len(step.passes), words, pass_numbers, step.schedule, width
        ),
        "factors": given["twiddles"],
        "count": np.uint32(len(step.passes)),
        "n": np.uint32(n),
        "rows": given["lanes"],
        "scale": given["scale"],
        "work": LocalMemory(room),
    }
    return Launch(TEMPLATE, KERNEL, params, (1,), (1,), arguments)


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
