"""A small kernel for tests of the runtime."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from opencl_lab.core.plan import LocalMemory
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

INT32 = np.dtype(np.int32)
# Small tiles: several launches for small arrays.
SMALL = {"WG_SIZE": 8, "TILE": 64, "WORK_PER_ITEM": 16}
ADD = """
__kernel void add(__global const int *source, __global int *target, const int amount,
                  __local int *tile)
{
    tile[get_local_id(0)] = source[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    target[get_global_id(0)] = tile[get_local_id(0)] + amount;
}
"""
ARGUMENTS = {
    "source": "x",
    "target": "y",
    "amount": np.int32(5),
    "tile": LocalMemory(4 * 8),
}


def run_plan(plan, queue):
    executable = session_of(queue).executable(object(), lambda: plan)
    given = np.arange(64, dtype=np.int32)
    return execute(executable, {"x": given}, queue).outputs["y"]


def block_of(array):
    """Return the memory of a device array to look at, and leave it in the hands of its pool."""
    lease = vars(array).get("_lease")
    return array.base_data if lease is None else lease.block


def together(*works):
    """Call functions in threads of their own at the same time; return their results."""
    start = threading.Barrier(len(works))

    def call(work):
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(call, works))
