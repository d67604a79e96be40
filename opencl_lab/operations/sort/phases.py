"""Launches of kernels in phases of claimed tasks, see ``clkernels/common/phases.mako``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.plan import Argument, Buffer, Launch

__all__ = ["in_phases"]


def in_phases(
    problem: SortProblem,
    device: Device,
    phases: int,
    items: int,
    arguments: Mapping[str, Argument],
    **kernel: Any,
) -> tuple[Buffer, tuple[Launch, ...]]:
    """Return the counters, and one launch; one a phase where items do not see what others write.

    Parameters
    ----------
    problem : SortProblem
    device : Device
    phases : int
    items : int
        How many take tasks, in groups of one.
    arguments : mapping
        Of the kernel, but for sizes, phases and counters.
    **kernel
        Further fields of `Launch`.
    """
    joined = device.capabilities.visible_writes
    spans = [(0, phases)] if joined else [(phase, phase + 1) for phase in range(phases)]
    counters = Buffer("counters", "zeros", (2 * phases + 1,), np.dtype(np.uint32))
    launches = tuple(
        Launch(
            global_size=(items,),
            local_size=(1,),
            arguments={
                **arguments,
                "n": np.uint64(problem.n),
                "rows": np.uint64(problem.rows),
                "from": np.uint32(begin),
                "to": np.uint32(end),
                "last": np.uint32(phases),
                "counters": counters.name,
            },
            **kernel,
        )
        for begin, end in spans
    )
    return counters, launches
