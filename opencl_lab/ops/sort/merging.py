"""Merging sorted runs on any device: CPUs merge, others sort, which is faster there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opencl_lab.core.kernels import WORD_TYPES
from opencl_lab.ops.sort.functions import sort, sort_by_key
from opencl_lab.ops.sort.merge_runs import MERGE, MOST_RUNS, RunsProblem
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.exchange import to_device
from opencl_lab.runtime.session import queue_or_default, session_of


def merge_runs(
    arrays: Sequence[Any], lengths: Sequence[int], *, descending: bool = False, queue: Any = None
) -> list[Any]:
    """Return keys, and values if there are any, that lie in sorted runs, merged stably.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray or pyopencl.array.Array
        Keys, one-dimensional and of a dtype of `opencl_lab.sort`, and perhaps values.
    lengths : sequence of int
        Of the runs.
    descending : bool
    queue : pyopencl.CommandQueue, optional
        Where to merge arrays of the host; those of a device are merged on their own queue.
    """
    lengths = [length for length in lengths if length]
    if len(lengths) < 2:
        return [array.copy() for array in arrays]
    keys, values = arrays[0], arrays[1:]
    on_device = is_device_array(keys)
    queue = keys.queue if on_device else queue_or_default(queue)
    fits = all(array.dtype.itemsize in WORD_TYPES for array in values)
    if session_of(queue).device.kind != "cpu" or len(lengths) > MOST_RUNS or not fits:
        how: dict[str, Any] = {"descending": descending, "queue": queue}
        return list(sort_by_key(keys, *values, **how)) if values else [sort(keys, **how)]
    width = values[0].dtype.itemsize if values else 0
    problem = RunsProblem(
        keys.size, keys.dtype, descending=descending, value_bytes=width, runs=len(lengths)
    )
    ends = np.cumsum(lengths, dtype=np.int64)
    given = {"keys": keys, "ends": to_device(ends, queue=queue) if on_device else ends}
    given |= {"values": values[0]} if values else {}
    made = MERGE.run(problem, given, queue=queue).outputs
    found = [made["sorted"].reshape(-1)]
    if values:
        found.append(made["sorted_values"].reshape(-1).view(values[0].dtype))
    return found
