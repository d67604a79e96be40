"""Keys of half precision: sorted as float32, which every device compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import item_launch
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan
from opencl_lab.ops.sort.problem import SortProblem

__all__ = ["widened", "with_half_keys"]

TEMPLATE = "sort/half_keys.cl.mako"
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
WIDE = {"keys": "wide_keys", "sorted": "wide_sorted"}
WG_SIZE = 64  # work-items, where the device takes so many


def widened(problem: SortProblem) -> SortProblem:
    """Return the problem that kernels solve: its keys in a type that they compare."""
    return replace(problem, dtype=SINGLE) if problem.dtype == HALF else problem


def with_half_keys(problem: SortProblem, wide: Plan, device: Device) -> Plan:
    """Return the plan for keys of half precision, around that of the widened problem."""
    shape = (problem.rows, problem.n)
    buffers = [Buffer("keys", "in", shape, HALF)]
    if not problem.indices:
        buffers.append(Buffer("sorted", "out", shape, HALF))
    buffers += [
        replace(buffer, name=WIDE[buffer.name], role="scratch") if buffer.name in WIDE else buffer
        for buffer in wide.buffers
    ]
    if not wide.launches:
        return Plan(tuple(buffers), ())
    launches = [_convert("widen_keys", "keys", problem, device)]
    launches += [launch.renamed(WIDE) for launch in wide.launches]
    if not problem.indices:
        launches.append(_convert("narrow_keys", "sorted", problem, device))
    return Plan(tuple(buffers), tuple(launches))


def _convert(kernel: str, keys: str, problem: SortProblem, device: Device) -> Launch:
    """Return the launch between the user's array `keys` and its wide form."""
    source, target = (keys, WIDE[keys]) if kernel == "widen_keys" else (WIDE[keys], keys)
    wg_size = min(WG_SIZE, device.capabilities.max_work_group)
    count = problem.rows * problem.n
    arguments: dict[str, Argument] = {
        "source": source,
        "target": target,
        "count": np.uint64(count),
    }
    return item_launch(TEMPLATE, kernel, count, {"WG_SIZE": wg_size}, arguments)
