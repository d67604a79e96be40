"""Launches of kernels that claim tasks in phases, see ``clkernels/common/phases.mako``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan
from opencl_lab.ops.sort.problem import SortProblem


def phased_plan(
    problem: SortProblem,
    device: Device,
    buffers: Sequence[Buffer],
    arguments: Mapping[str, Argument],
    *,
    phases: int,
    items: int,
    **kernel: Any,
) -> Plan:
    """Return a plan of one launch, or of one per phase where items do not see each other's writes.

    `items` work-items, in groups of one, claim tasks. Counters are added to the buffers; sizes,
    phases and counters to the arguments. `kernel` holds further fields of `Launch`.
    """
    joined = device.capabilities.visible_writes
    spans = [(0, phases)] if joined else [(phase, phase + 1) for phase in range(phases)]
    counters = Buffer("counters", "zeros", (2 * phases + 1,), np.dtype(np.uint32))
    given: dict[str, Argument] = {
        **arguments,
        "n": np.uint64(problem.n),
        "rows": np.uint64(problem.rows),
    }
    launches = tuple(
        Launch(
            global_size=(items,),
            local_size=(1,),
            arguments={
                **given,
                "from": np.uint32(begin),
                "to": np.uint32(end),
                "last": np.uint32(phases),
                "counters": counters.name,
            },
            **kernel,
        )
        for begin, end in spans
    )
    return Plan((*buffers, counters), launches)
