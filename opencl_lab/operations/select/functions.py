"""The public functions that select among keys."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.operations.select.problem import TopkProblem
from opencl_lab.operations.select.topk import TOPK
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.replay import replayed
from opencl_lab.runtime.arrays import AnyArray, as_array, empty, native, overlap, queue_for
from opencl_lab.runtime.rows import Rows

__all__ = ["topk"]

LONG = np.dtype(np.int64)


@replayed()
def topk(
    a: Any,
    k: int,
    *,
    largest: bool = True,
    axis: int | None = -1,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: tuple[AnyArray, AnyArray] | None = None,
    queue: Any = None,
) -> tuple[AnyArray, AnyArray]:
    """Return the `k` largest elements along an axis, the largest first, and where they are.

    It is a radix select: what a sort would take for the other elements is not spent. Nothing is
    waited for on a device.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Booleans, integers of 8 to 64 bits, float16, float32 or float64; any shape, any
        strides. It is not changed.
    k : int
        0 to the length of the axis.
    largest : bool
        If not, the smallest elements are wanted, the smallest first.
    axis : int, optional
        Axis to look along; None flattens first.
    algorithm : str
        ``"auto"`` or ``"radix-select"``.
    config : mapping, optional
        Kernel parameters of the selection that replace the default ones.
    out : tuple of two arrays, optional
        Receive values and indices, of whose shape and dtypes they are. They may share memory
        with `a`, but not with each other.
    queue : pyopencl.CommandQueue, optional
        Where to run for a host array; default: the library's queue on `select_device()`.

    Returns
    -------
    values : numpy.ndarray or pyopencl.array.Array
        Of the dtype of `a`, with `k` elements along `axis`, in order: what
        ``numpy.sort(kind="stable")`` puts last, last first, or first. NaN counts as larger than
        any number, as for `sort` and `torch.topk`.
    indices : the same, int64
        Positions along `axis`; of equal elements the first position comes first, and those
        taken are the first ones.

    Raises
    ------
    InvalidProblem
        If `k` is negative or more than there are, and as for `sort`.
    InvalidConfig, BuildError, LaunchError
        As for `sort`.
    """
    if out is None:
        out_values = out_indices = None
    elif isinstance(out, (tuple, list)) and len(out) == 2:
        out_values, out_indices = out
    else:
        raise InvalidProblem("out must be a pair of arrays, for the values and for the indices")
    return _topk(
        a,
        k=k,
        largest=largest,
        axis=axis,
        algorithm=algorithm,
        config=config,
        out_values=out_values,
        out_indices=out_indices,
        queue=queue,
    )


@replayed()
def _topk(
    a: Any,
    *,
    k: int,
    largest: bool,
    axis: int | None,
    algorithm: str,
    config: Mapping[str, Any] | None,
    out_values: AnyArray | None,
    out_indices: AnyArray | None,
    queue: Any,
) -> tuple[AnyArray, AnyArray]:
    """Do what `topk` says; with outs that the kind of a call knows one by one."""
    try:
        k = operator.index(k)
    except TypeError:
        raise InvalidProblem(f"k must be a whole number, not {k!r}") from None
    given = as_array(a)
    array = native(given)
    queue = queue_for(array, queue)
    rows = Rows.of(array, axis, queue)
    problem = TopkProblem(rows.length, k, array.dtype, rows.count, largest)
    # The result as rows: shorter ones, which share no memory with the data.
    shape = tuple(k if d == rows.axis else size for d, size in enumerate(rows.shape))
    short = replace(rows, shape=shape)
    if out_values is not None and out_indices is not None and overlap(out_values, out_indices):
        raise InvalidProblem("the two arrays of out share memory")
    out = {
        "sorted": short.target(out_values, given.dtype),
        "sorted_values": short.target(out_indices, LONG),
    }
    if rows.count * k:
        inputs = {"keys": rows.data}
        found = TOPK.run(problem, inputs, algorithm=algorithm, config=config, queue=queue).outputs
        order = SortProblem(k, array.dtype, rows.count, largest, value_bytes=LONG.itemsize)
        few = {"keys": found["values"], "values": found["places"]}
        targets = {name: target for name, target in out.items() if target is not None}
        ordered = SORT.run(order, few, queue=queue, out=targets).outputs
        values, indices = ordered["sorted"], ordered["sorted_values"].view(LONG)
    else:
        values, indices = (
            empty(array, (rows.count, k), dtype, queue) for dtype in (array.dtype, LONG)
        )
    if not given.dtype.isnative:
        values = values.astype(given.dtype)
    return (
        short.restore(values, out_values, queue),
        short.restore(indices, out_indices, queue),
    )
