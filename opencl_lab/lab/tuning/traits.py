"""What a plan looks like from outside: numbers that tell configurations apart better than names.

Two parameters often matter by their product: items of a group, items of a launch and so the work
of each, local memory, scratch memory. A plan has these for any algorithm.
"""

from __future__ import annotations

import math

from opencl_lab.core.plan import Plan

__all__ = ["traits_of"]


def traits_of(plan: Plan) -> tuple[float, ...]:
    """Return binary logarithms of what the largest launch takes, and how many launches there are.

    Items of a group, items of the launch, bytes of local memory; launches; bytes of scratch memory.
    """
    if not plan.launches:
        return (0.0,) * 5
    largest = max(plan.launches, key=lambda launch: math.prod(launch.global_size))
    scratch = sum(
        math.prod(buffer.shape) * buffer.dtype.itemsize
        for buffer in plan.buffers
        if buffer.role in ("scratch", "zeros")
    )
    return (
        math.log2(max(1, math.prod(largest.local_size))),
        math.log2(max(1, math.prod(largest.global_size))),
        math.log2(1 + largest.local_bytes),
        float(len(plan.launches)),
        math.log2(1 + scratch),
    )
