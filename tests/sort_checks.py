"""What several tests of sorting share."""

from __future__ import annotations

import numpy as np

from opencl_lab.drivers.discovery import select_device
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

# Small tiles, so that small arrays take merge passes too; one kernel for many sizes.
SMALL = {
    "algorithm": "odd-even-merge",
    "config": {"WG_SIZE": 8, "TILE": 64, "WORK_PER_ITEM": 16},
}
SHAPE = (5, 6, 170)
VIEWS = {
    "whole": lambda a: a,
    "offset": lambda a: a[2:],
    "strided": lambda a: a[:, :, ::2],
    "reversed": lambda a: a[::-1],
    "all-reversed": lambda a: a[::-1, ::-1, ::-1],
    "transposed": lambda a: a.T,
    "inner": lambda a: a[:, 1:3, 5:90],
    "column": lambda a: a[1, :, 3],
}


def stable_order(keys, descending=False, axis=-1, nan_first=False):
    """Return the stable order of keys, NaN and NaT last unless `nan_first`."""
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable")
    # Reversing before and after a stable sort keeps equal keys in their order.
    flipped = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    order = keys.shape[axis] - 1 - np.flip(flipped, axis)
    if nan_first or keys.dtype.kind not in "fmM":
        return order
    missing = np.take_along_axis(np.isnan(keys), order, axis)
    return np.take_along_axis(order, np.argsort(missing, axis=axis, kind="stable"), axis)


def bits(array):
    """Return the bytes of every element, to tell -0.0 from 0.0 and NaN from NaN."""
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def taken(n):
    """Return the name of what sorts `n` int32 from NumPy if nothing else is asked for."""
    problem = SortProblem(n, np.dtype(np.int32))
    side = SORT_SOLVER.side(problem, select_device())
    return f"opencl:{SORT_SOLVER.choose(problem, side).name}"
