"""The public functions for selection and search: `topk`, `unique`, `searchsorted`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
import pyopencl as cl

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import checked
from opencl_lab.core.plan import round_up
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.select.problem import SearchProblem, TopkProblem, UniqueProblem
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.select.solver import TOPK_SOLVER, UNIQUE_SOLVER
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.functions import argsort
from opencl_lab.ops.sort.problem import check_keys
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    axis_of,
    beginning,
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
    to_device,
)
from opencl_lab.runtime.call import Call, queue_for
from opencl_lab.runtime.exchange import to_host
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.rows import Rows

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
        ``"auto"``, ``"radix-select"`` or ``"sort"``.
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


@overload
def unique(
    a: Any,
    return_counts: Literal[False] = False,
    *,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    axis: int | None = None,
    equal_nan: bool = True,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray: ...


@overload
def unique(
    a: Any,
    return_counts: bool = False,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray | tuple[AnyArray, ...]: ...


@checked
def unique(
    a: Any,
    return_counts: bool = False,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray | tuple[AnyArray, ...]:
    """Return the elements of an array in order, each once, as `numpy.unique` does.

    Their number is known only when the device has counted them. So this waits once, also for
    device arrays. With `axis`, the device sorts by eight bytes of the slices at a time, and the
    host compares slices: those of device arrays are copied there.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        As in `sort`, of any shape.
    return_counts : bool
        Whether to return the number of occurrences of each value.
    return_index : bool
        Whether to return the position of each value's first occurrence in `a`, flattened.
    return_inverse : bool
        Whether to return the index in `values` of each element of `a`.
    axis : int, optional
        In place of elements, the slices at each index of this axis: for axis 0 of a table, its
        rows. Their order is that of their first elements that differ.
    equal_nan : bool
        Whether all NaN, or all NaT, count as equal. As in NumPy, a slice that has one equals no
        other slice, whatever this says.
    algorithm, config : optional
        As for `sort`.
    queue : pyopencl.CommandQueue, optional
        Where to run; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.

    Returns
    -------
    values : numpy.ndarray or pyopencl.array.Array
        Of the dtype of `a`; one-dimensional, or with `axis` of the dimensions of `a`. Of equal
        ones, as -0.0 and 0.0 are, the first one in `a` is returned.
    index : the same, one-dimensional, int64
        Only with `return_index`: ``a.reshape(-1)[index]`` is `values`; with `axis`
        ``a.take(index, axis)``.
    inverse : the same, int64, of the shape of `a`, or with `axis` of one dimension
        Only with `return_inverse`: ``values[inverse]`` is `a`; with `axis`
        ``values.take(inverse, axis)``.
    counts : the same, int64
        Only with `return_counts`.

    Raises
    ------
    InvalidProblem, InvalidConfig, BuildError, LaunchError
        As for `sort`.
    """
    given = as_array(a)
    array = native(given)
    axis = None if axis is None else axis_of(axis, array.ndim)
    if axis is not None and array.ndim > 1:
        wanted = {"index": return_index, "inverse": return_inverse, "counts": return_counts}
        how = {"algorithm": algorithm, "config": config, "queue": queue, "device": device}
        return _unique_slices(given, axis, wanted, how)
    options: dict[str, Any] = {
        "equal_nan": equal_nan or array.dtype.kind not in "fmM",
        "first_places": return_index,
        "inverse": return_inverse,
        "counts": return_counts,
        "algorithm": algorithm,
        "config": config,
    }
    arrays = _unique(array, **options, queue=queue, device=device)
    sent = arrays is None
    if arrays is None:
        call = Call()
        call.use(array, queue, device)
        array = to_device(np.ascontiguousarray(array), call.queue)
        arrays = _unique(array, **options, queue=None, device=None)
        assert arrays is not None
    found, *parts = arrays
    on_device = is_device_array(found)
    used: Any = found.queue if on_device else None  # that of the call; host arrays need none
    try:
        m = int(found.get()[0] if on_device else found[0]) if array.size else 0
        place = 1 + return_index  # of the inverse, which is not cut
        whole = parts.pop(place) if return_inverse else None
        results = [beginning(part, m, used) for part in parts]
        if whole is not None:
            results.insert(place, reshaped(whole, tuple(given.shape), Call(used)))
        if sent:
            results = [part.get() for part in results]
    except cl.Error as error:
        raise explain(error, used) from error
    if not given.dtype.isnative:
        results[0] = results[0].astype(given.dtype)
    return results[0] if len(results) == 1 else tuple(results)


def _unique_slices(
    given: AnyArray, axis: int, wanted: Mapping[str, bool], how: Mapping[str, Any]
) -> AnyArray | tuple[AnyArray, ...]:
    """Return the slices of an array along an axis in order, each once, and what is wanted."""
    queue = None
    if is_device_array(given):
        queue = queue_for(given, how["queue"], how["device"])
        how = {**how, "queue": queue, "device": None}
        given = to_host(given.with_queue(queue))
    array = np.ascontiguousarray(given)
    n = array.shape[axis]
    rows = np.moveaxis(native(array), axis, 0)
    rows = np.ascontiguousarray(rows).reshape(n, rows.size // n if n else 0)
    check_keys(rows.dtype, rows.size)
    # Words of eight bytes in the order of the rows.
    code = codes(rows)
    width = code.shape[1] * code.itemsize
    padded = np.zeros((n, round_up(width, 8)), np.uint8)
    padded[:, :width] = code.astype(code.dtype.newbyteorder(">")).view(np.uint8).reshape(n, width)
    words = padded.view(">u8").astype(np.uint64)
    order = np.arange(n)
    for word in words.T[::-1]:
        order = order[argsort(word[order], **how)]
    heads = np.ones(n, bool)
    heads[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    if rows.dtype.kind in "fmM":
        heads |= np.isnan(rows[order]).any(axis=1)
    found = {"values": array.take(order[heads], axis), "index": order[heads]}
    found["inverse"] = np.empty_like(order)
    found["inverse"][order] = np.cumsum(heads) - 1
    found["counts"] = np.diff(np.flatnonzero(heads), append=n)
    results: list[AnyArray] = [part for name, part in found.items() if wanted.get(name, True)]
    if queue:
        results = [to_device(np.ascontiguousarray(part), queue) for part in results]
    return results[0] if len(results) == 1 else tuple(results)


@replayed()
def _unique(
    call: Call,
    a: AnyArray,
    *,
    equal_nan: bool,
    first_places: bool,
    inverse: bool,
    counts: bool,
    algorithm: str,
    config: Mapping[str, Any] | None,
    queue: Any,
    device: DeviceSpec,
) -> tuple[AnyArray, ...] | None:
    """Return the number of results, and arrays as long as `a` that begin with them.

    None for a host array if the device has memory of its own: it is to be sent there first, so that
    only results come back.
    """
    call.use(a, queue, device)
    problem = UniqueProblem(a.size, a.dtype, counts, first_places, inverse, equal_nan)
    if a.size and not is_device_array(a) and not call.device.unified_memory:
        return None
    rows = Rows.of(a, None, call)
    outputs = UNIQUE_SOLVER.run(
        problem,
        {"keys": reshaped(rows.data, (rows.length,), call)},
        algorithm=algorithm,
        config=config,
        call=call,
    ).outputs
    names = ("found", "values", "first_places", "inverse", "counts")
    return tuple(outputs[name] for name in names if name in outputs)


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
