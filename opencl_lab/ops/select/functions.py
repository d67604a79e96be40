"""The public functions `topk` and `searchsorted`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.select.problem import SearchProblem, TopkProblem
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.select.solver import TOPK_SOLVER
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    check_out,
    check_sides,
    contiguous,
    copied,
    direct_target,
    is_device_array,
    native,
    overlap,
    pair_of,
    reshaped,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.waiting import WaitFor

LONG = np.dtype(np.int64)


@replayed()
def topk(
    call: Call,
    a: Any,
    k: int,
    *,
    largest: bool = True,
    axis: int | None = -1,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: tuple[AnyArray, AnyArray] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[AnyArray, AnyArray]:
    """Return the `k` largest elements along an axis, the largest first, and where they are.

    This is a radix select, which does not sort the other elements; if there are few of these, or
    few elements at all, it is a sort. On a device it does not wait.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Booleans, integers of 8 to 64 bits, float16, float32, float64, datetime64 or timedelta64;
        any shape, any strides. It is not changed.
    k : int
        0 to the length of the axis.
    largest : bool
        If False, return the smallest elements, the smallest first.
    axis : int, optional
        Axis to select along; None flattens first.
    algorithm : str
        ``"auto"``, ``"radix-select"``, ``"sort"``, or on GPUs ``"sample-select"``, which reads long
        rows once.
    config : mapping, optional
        Kernel parameters of the radix select that replace the default ones; ``"auto"`` then
        means this.
    out : tuple of two arrays, optional
        Receive values and indices, with their shape and dtypes. They may share memory with `a`,
        but not with each other.
    queue : pyopencl.CommandQueue, optional
        Where to run; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    values : numpy.ndarray or pyopencl.array.Array
        Of the dtype of `a`, with `k` elements along `axis`: the last ones of
        ``numpy.sort(kind="stable")``, in reverse, or the first ones. NaN counts as larger than
        any number, as for `torch.topk`, and NaT as later than any time.
    indices : the same, int64
        Positions along `axis`. Among equal elements, those at the first positions are selected,
        in the order of their positions.

    Raises
    ------
    InvalidProblem
        If `k` is negative or greater than the length of the axis, and as for `sort`.
    InvalidConfig, BuildError, LaunchError
        As for `sort`.
    """
    out_values, out_indices = pair_of(out, "values", "indices")
    given = as_array(a)
    array = native(given)
    call.use(array, queue, device)
    rows = Rows.of(array, axis, call)
    problem = TopkProblem(rows.length, k, array.dtype, rows.count, largest)
    # The result as shorter rows, which share no memory with the data.
    shape = tuple(k if d == rows.axis else size for d, size in enumerate(rows.shape))
    short = replace(rows, shape=shape)
    if out_values is not None and out_indices is not None and overlap(out_values, out_indices):
        raise InvalidProblem("the two arrays of out share memory")
    targets = {
        "values": short.target(out_values, given.dtype),
        "places": short.target(out_indices, LONG),
    }
    if algorithm == "auto" and config is not None:
        algorithm = "radix-select"
    found = TOPK_SOLVER.run(
        problem, {"keys": rows.data}, algorithm=algorithm, config=config, out=targets, call=call
    ).outputs
    values, indices = found["values"], found["places"]
    if not given.dtype.isnative:
        values = values.astype(given.dtype)
    return short.restore(values, out_values, call), short.restore(indices, out_indices, call)


@replayed("sorter")
def searchsorted(
    call: Call,
    a: Any,
    v: Any,
    side: Literal["left", "right"] = "left",
    sorter: Any = None,
    *,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Return where to insert elements into a sorted array, as `numpy.searchsorted` does.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array, one-dimensional
        Sorted as by `sort`, NaN and NaT last, unless there is a `sorter`; of the dtypes of `sort`.
        The order is not checked; without it, results are meaningless.
    v : array_like or pyopencl.array.Array
        Of any shape, on the same side as `a`. On a device both have the same dtype. On the host
        both are converted as NumPy does, but integers of all types are compared exactly; times
        that the finer unit cannot hold are refused.
    side : str
        ``"left"``: before equal elements; ``"right"``: after them.
    sorter : array_like or pyopencl.array.Array of int, optional
        Indices that sort `a`, as `argsort` returns them: as long as `a`, on the same side. They
        are checked on the host; on a device, wrong ones give wrong results.
    algorithm : str
        ``"auto"`` or ``"binary-search"``.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, int64, optional
        Receives the result, with its shape.
    queue : pyopencl.CommandQueue, optional
        Where to run; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array, int64
        Of the shape of `v`: the number of elements of `a` that are less (``left``) or not greater
        (``right``). For a single number `v` on the host it is a number, as in NumPy.

    Raises
    ------
    InvalidProblem
        If `a` is not one-dimensional, for an unknown `side` or an invalid `sorter`, and as for
        `sort`.
    InvalidConfig, BuildError, LaunchError
        As for `sort`.
    """
    keys, values = as_array(a), as_array(v)
    check_sides(a=keys, v=values)
    if keys.ndim != 1:
        raise InvalidProblem(f"a must have one dimension, not {keys.ndim}")
    if side not in ("left", "right"):
        raise InvalidProblem(f"side must be 'left' or 'right', not {side!r}")
    call.use(keys, queue, device)
    call.check(values)
    given = values
    keys, values = of_one_type(keys, values)
    inputs = {"keys": keys, "values": values}
    if sorter is not None:
        inputs["sorter"] = _sorter_of(keys, sorter, call)
    if out is not None:
        check_out(out, keys, tuple(values.shape), LONG)
    n, m = keys.size, values.size
    problem = SearchProblem(n, m, keys.dtype, side == "right", sorter is not None)
    target = direct_target(out, tuple(values.shape), LONG, tuple(inputs.values()))
    inputs = {name: contiguous(array, call) for name, array in inputs.items()}
    result = SEARCH.run(
        problem,
        {**inputs, "values": reshaped(inputs["values"], (m,), call)},
        algorithm=algorithm,
        config=config,
        out={"places": None if target is None else reshaped(target, (m,), call)},
        call=call,
    ).outputs["places"]
    put_beyond(result, keys, given)
    if target is not None:
        return out
    result = reshaped(result, tuple(values.shape), call)
    if out is not None:
        assign(out, result, call)
        return out
    return result[()] if values.ndim == 0 and not is_device_array(result) else result


def _sorter_of(keys: AnyArray, sorter: Any, call: Call) -> AnyArray:
    """Return a valid `sorter` as int64, on the side of the keys."""
    sorter = as_array(sorter)
    call.check(sorter)
    check_sides(a=keys, sorter=sorter)
    if tuple(sorter.shape) != tuple(keys.shape):
        raise InvalidProblem(
            f"sorter must have the shape of a, {tuple(keys.shape)}, not {tuple(sorter.shape)}"
        )
    if sorter.dtype.kind not in "iu" and sorter.size:
        raise InvalidProblem(f"sorter must hold integers, not {sorter.dtype}")
    if not is_device_array(sorter) and sorter.size:
        least, most = sorter.min(), sorter.max()
        if least < 0 or most >= keys.size:
            wrong = least if least < 0 else most
            raise InvalidProblem(f"sorter must hold 0 to {keys.size - 1}, the places in a: {wrong}")
    return sorter if sorter.dtype == LONG else copied(sorter, call, dtype=LONG)


def of_one_type(keys: AnyArray, values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return both in the type in which NumPy compares them, and in native byte order.

    Integers get the type of the keys, and `put_beyond` sees to values beyond its limits.
    """
    if is_device_array(keys):
        if keys.dtype != values.dtype:
            raise InvalidProblem(
                f"on a device a and v must have one dtype, not {keys.dtype} and {values.dtype}"
            )
        return keys, values
    if _are_integers(keys, values):
        limits, own = np.iinfo(keys.dtype), np.iinfo(values.dtype)
        least, most = max(limits.min, own.min), min(limits.max, own.max)
        if (least, most) != (own.min, own.max):
            values = np.asarray(np.clip(values, own.dtype.type(least), own.dtype.type(most)))
        return native(keys), values.astype(native(keys).dtype, copy=False)
    try:
        common = np.result_type(keys.dtype, values.dtype).newbyteorder("=")
    except TypeError as error:
        raise InvalidProblem(f"cannot compare {keys.dtype} and {values.dtype}") from error
    for times in (keys, values):
        if times.dtype.kind in "mM":  # NumPy's conversion may wrap around
            try:
                back = times.astype(common, copy=False).astype(times.dtype, copy=False)
                same = not ((back != times) & ~np.isnat(times)).any()
            except OverflowError:  # from NumPy 2.5 on
                same = False
            if not same:
                raise InvalidProblem(f"not all times of {times.dtype} can be had as {common}")
    return keys.astype(common, copy=False), values.astype(common, copy=False)


def _are_integers(keys: AnyArray, values: AnyArray) -> bool:
    return keys.dtype.kind in "iu" and values.dtype.kind in "iu"


def put_beyond(places: AnyArray, keys: AnyArray, values: AnyArray) -> None:
    """Correct the places of integers that the type of the keys does not hold."""
    if not _are_integers(keys, values) or keys.dtype == values.dtype:
        return
    limits, values = np.iinfo(keys.dtype), values.reshape(-1)
    places[values < limits.min] = 0
    places[values > limits.max] = keys.size
