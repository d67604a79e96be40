"""Where ranks cut their sorted keys into a piece for each rank, all ranks together.

The cuts are exact: equal keys are taken rank by rank, and the pieces for each rank have the lengths
of a `Split`. Keys on the host are counted, which takes the fewest messages among many ranks. Of
keys on devices only a few come to the host, which all ranks see.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.layout import Split
from opencl_lab.distributed.mpi import phases
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.multiway_split import Samples, first_of
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.exchange import to_host
from opencl_lab.runtime.results import borrowed
from opencl_lab.runtime.session import session_of

DIGIT = 8
"""Bits of a code that are found in a round of messages."""
SAMPLES = 1 << 14
"""Samples for a cut that all ranks together show to each other in a round: far more than ranks."""
SHOWN = 1 << 17
"""Keys in the windows of a cut from which samples of them are shown first."""


def cuts_by_samples(
    comm: Any, keys: AnyArray, descending: bool, most: int = SAMPLES, few: int = SHOWN
) -> Array:
    """Return the cuts of sorted keys on a device, as `cuts_by_counting` does.

    Samples that all ranks show to each other tell in which window of each rank a cut is; then come
    samples of the windows, `most` in a round, until there are `few` keys in all of a cut.
    """
    sizes, keys = comm.allgather(keys.size), borrowed(keys)
    targets = Split(sum(sizes), comm.size).bounds[1:-1]
    low = np.zeros((len(targets), comm.size), np.int64)
    high = np.full_like(low, sizes)
    found = False
    while not found:
        totals = (high - low).sum(axis=1)
        steps = np.where(totals > few, -(-totals // most), 1)
        mine = [
            _read(keys[first:last:step])
            for first, last, step in np.stack(
                [low[:, comm.rank], high[:, comm.rank], steps], 1
            ).tolist()
        ]
        with phases.communication(comm):
            shown = comm.allgather(mine)
        for cut, step in enumerate(steps.tolist()):
            windows = [parts[cut] for parts in shown]
            left = targets[cut] - int(low[cut].sum())
            if step == 1:
                begin = end = first_of([codes(part, descending) for part in windows], left)
            else:
                samples = Samples((high - low)[cut].tolist(), keys.dtype, descending, step)
                for run, window in enumerate(windows):
                    samples.put(run, window)
                samples.order()
                begin, end = samples.window(left)
            low[cut], high[cut] = low[cut] + begin, low[cut] + end
        found = bool((steps == 1).all())
    return np.array([0, *low[:, comm.rank], keys.size])


def _read(keys: AnyArray) -> Array:
    """Return a few keys; those in one piece are not copied on the device first."""
    if not keys.flags.c_contiguous:
        return to_host(keys)
    with session_of(keys.queue).exclusive(keys.queue):
        return np.asarray(keys.get())


def cuts_by_counting(comm: Any, keys: Array, descending: bool) -> Array:
    """Return where to cut this rank's sorted keys into a piece for each rank, with both ends.

    The border of a cut is the greatest code with so few lower ones that they lie before the cut. It
    is found digit by digit: in each round all ranks count their keys below each possible digit.
    """
    total = int(_summed(comm, np.array([keys.size]))[0])
    targets = np.array(Split(total, comm.size).bounds[1:-1])
    border = np.zeros(targets.size, np.uint64)
    digits = np.arange(1, 1 << DIGIT, dtype=np.uint64)
    for shift in reversed(range(0, 8 * keys.itemsize, DIGIT)):
        tried = border[:, None] + (digits << np.uint64(shift))
        below = _summed(comm, _count(keys, tried, np.less, descending))
        digit = np.count_nonzero(below <= targets[:, None], axis=1)
        border += digit.astype(np.uint64) << np.uint64(shift)
    below = _count(keys, border, np.less, descending)
    equal = _count(keys, border, np.less_equal, descending) - below
    # Of the keys that equal the border, the first ranks' lie before the cut.
    taken = targets - _summed(comm, below) - (_summed(comm, equal, comm.Scan) - equal)
    return np.array([0, *(below + np.clip(taken, 0, equal)), keys.size])


def _summed(comm: Any, counts: Array, how: Any = None) -> Array:
    """Return the sums over all ranks, or with `Scan` over those up to this one."""
    result = np.empty_like(counts)
    with phases.communication(comm):
        (how or comm.Allreduce)(counts, result)
    return result


def _count(keys: Array, wanted: Array, compare: np.ufunc, descending: bool) -> Array:
    """Return how many sorted keys have a lower code than each of those wanted, or no higher one.

    It converts only the keys that a binary search looks at.
    """
    low = np.zeros(wanted.shape, np.int64)
    high = np.full_like(low, keys.size)
    while (low < high).any():
        middle = (low + high) // 2
        code = codes(keys[np.minimum(middle, keys.size - 1)], descending)
        before = compare(code, wanted) & (low < high)
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
    return low
