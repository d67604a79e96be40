"""The public function `unique`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
import pyopencl as cl

from opencl_lab.core.options import checked
from opencl_lab.core.plan import round_up
from opencl_lab.core.space import Config
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.select.solver import UNIQUE_SOLVER
from opencl_lab.ops.sort.codes import codes
from opencl_lab.ops.sort.functions import argsort
from opencl_lab.ops.sort.problem import check_keys
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    axis_of,
    beginning,
    is_device_array,
    native,
    reshaped,
    to_device,
)
from opencl_lab.runtime.call import Call, queue_for
from opencl_lab.runtime.exchange import to_host
from opencl_lab.runtime.executable import explain
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.waiting import WaitFor, after_events


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
    wait_for: WaitFor = None,
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
    wait_for: WaitFor = None,
) -> AnyArray | tuple[AnyArray, ...]: ...


@after_events
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
    wait_for: WaitFor = None,
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
    algorithm : str
        ``"auto"`` or ``"sort"``: by whichever sort is the fastest.
    config : mapping, optional
        Accepted as by other functions; the sort has its own, and there are no other parameters.
    queue : pyopencl.CommandQueue, optional
        Where to run; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

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
        made = UNIQUE_SOLVER.algorithm("sort" if algorithm == "auto" else algorithm)
        made.space.check(config or {}, Config())  # it has none to take
        how = {"queue": queue, "device": device}
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
