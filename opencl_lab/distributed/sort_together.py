r"""Sorts by ranks of one node whose devices are CPUs: as one process would, bucket by bucket.

```text
 keys of rank 0   keys of rank 1
    |     \       /     |          1. all ranks count the keys of each bucket, and tell each other
    v      v     v      v          2. they move keys to the buckets, in memory that all share
 | bucket | bucket | bucket | ..
    |            |                 3. each sorts the buckets of its part
 part of rank 0   part of rank 1
```

Keys are read three times and written twice. To sort parts first, exchange pieces and merge them
would add three reads and three writes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, LaunchError
from opencl_lab.core.kernels import index_type
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.layout import Split
from opencl_lab.distributed.mpi import phases
from opencl_lab.distributed.node import NodeMemory, node_of
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.radix_cpu import SAMPLE
from opencl_lab.ops.sort.radix_cpu_ranks import Buckets, PartProblem, buckets_of, run_step
from opencl_lab.runtime.arrays import is_device_array

LEAST = 1 << 22
"""Keys of all ranks from which it takes less time than to sort, exchange and merge parts."""
SPOTS, PAIRS = 32, 16
"""Places at which neighbouring keys are compared, and how many of these, to see order."""
FEW = 8
"""One of so many pairs may be out of order in keys that look ordered."""


def sorted_together(
    comm: Any, mine: list[Any], descending: bool, device: Device
) -> list[Array] | None:
    """Return this rank's part of sorted keys, and of values if there are any, all on the host.

    None on all ranks, if they do not share memory, if the keys are few, crowd in a few buckets or
    look ordered, which other sorts take less time for, or if there is no room.
    """
    node = node_of(comm)
    if node is None:
        return None
    sizes = comm.allgather(-1 if any(map(is_device_array, mine)) else mine[0].size)
    whole = sum(sizes)
    if min(sizes) < 0 or whole < max(LEAST, 1):
        return None
    sampled = [-(-SAMPLE * size // whole) for size in sizes]
    bounds = Split(whole, comm.size).bounds
    begin, end = bounds[comm.rank :][:2]
    problem, buckets = None, None
    try:
        problem = PartProblem(
            end - begin, mine[0].dtype, descending=descending,
            value_bytes=mine[1].dtype.itemsize if mine[1:] else 0,
            whole=whole, low=begin, sampled=sum(sampled),
        )  # fmt: skip
        if not _look_ordered(mine[0], descending):
            buckets = buckets_of(problem, device)
    except (InvalidProblem, InvalidConfig, LaunchError):  # of values, or of the device
        pass
    told = comm.allgather((buckets, device.compute_units))
    if problem is None or any(one is None or one != told[0][0] for one, _ in told):
        return None
    assert buckets is not None
    sample = np.concatenate(comm.allgather(_sample(mine[0], sampled[comm.rank])))
    units = sum(units for _, units in told)
    return _sorted(node, problem, buckets, mine, sample, device, bounds, units)


def _sorted(
    node: NodeMemory,
    problem: PartProblem,
    buckets: Buckets,
    mine: list[Array],
    sample: Array,
    device: Device,
    bounds: Sequence[int],
    units: int,
) -> list[Array] | None:
    comm, queue = node.comm, device.queue()
    local = replace(problem, n=mine[0].size)
    given = {"keys": mine[0], "sampled": sample}
    table = run_step(local, "count", queue, given)["table"].astype(np.int64)
    if not mine[0].size:
        table[...] = 0
    own = table.sum(axis=0)
    counts = np.empty((comm.size, own.size), np.int64)
    with phases.communication(comm):
        comm.Allgather(own, counts)
    every = counts.sum(axis=0)
    runs = buckets.runs(every, units)
    if runs is None or _longest_cut(runs, bounds) > buckets.border:
        return None
    # In a bucket, elements lie rank by rank, and chunk by chunk.
    places = np.cumsum(every) - every + counts[: comm.rank].sum(axis=0)
    places = places + np.cumsum(table, axis=0) - table
    with phases.communication(comm):
        parts = node.parts([(problem.whole,)], np.dtype(f"V{Elements(problem).nbytes}"))
    if parts is None:
        return None
    index = index_type(problem.whole)
    given |= {"table": places.astype(index)} | ({"values": mine[1]} if mine[1:] else {})
    run_step(local, "scatter", queue, given, parts[0])
    with phases.communication(comm):
        node.fence()
    starts = np.zeros(buckets.number + 2, index)
    some = _overlapping(runs, problem.low, problem.low + problem.n)
    starts[: len(some) + 1] = len(some) - 1, *some
    made = run_step(problem, "finish", queue, {"starts": starts}, parts[0])
    names = ("sorted", "sorted_values")[: len(mine)]
    return [made[name].reshape(-1).view(one.dtype) for name, one in zip(names, mine, strict=True)]


def _sample(keys: Array, count: int) -> Array:
    """Return some keys, evenly apart."""
    return np.ascontiguousarray(keys[np.arange(count) * keys.size // max(count, 1)])


def _look_ordered(keys: Array, descending: bool) -> bool:
    """Return whether few neighbours of a sample descend, or few ascend."""
    if keys.size <= PAIRS:
        return False
    spots = np.linspace(0, keys.size - PAIRS - 1, SPOTS, dtype=np.int64)
    found = codes(keys[spots[:, None] + np.arange(PAIRS + 1)], descending)
    rises, falls = (found[:, :-1] < found[:, 1:]).sum(), (found[:, :-1] > found[:, 1:]).sum()
    return bool(min(rises, falls) <= SPOTS * PAIRS // FEW)


def _longest_cut(runs: Sequence[int], bounds: Sequence[int]) -> int:
    """Return the elements of the longest run of which two ranks have a part."""
    last = [bisect_left(runs, bound) for bound in bounds[1:-1]]  # one after the run with the bound
    return max(
        (runs[end] - runs[end - 1] for end in last if end and runs[end] not in bounds), default=0
    )


def _overlapping(runs: Sequence[int], begin: int, end: int) -> Sequence[int]:
    """Return where the runs begin that have some of these elements, and where the last one ends."""
    return runs[max(bisect_right(runs, begin) - 1, 0) : bisect_left(runs, end) + 1]
