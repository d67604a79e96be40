"""The public functions for sorting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import WORD_TYPES
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    check_sides,
    is_device_array,
    native,
    overlap,
    pair_of,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.together import Devices, asked_for
from opencl_lab.runtime.waiting import WaitFor

KINDS = ("quicksort", "heapsort", "mergesort", "stable")
"""Kinds of `numpy.sort`."""


@replayed()
def sort(
    call: Call,
    a: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    bits: tuple[int, int] | None = None,
    kind: str | None = None,
    stable: bool | None = None,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
    devices: Devices = None,
) -> AnyArray:
    """Sort an array stably, in the order of ``numpy.sort(kind="stable")``.

    A host array that needs more memory than the device has (or than ``OCLAB_DEVICE_BYTES``) is
    sorted in parts; the host then needs room for a third such array. With `bits`, an array that
    does not fit is refused.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Booleans, integers of 8 to 64 bits, float16, float32, float64, datetime64 or timedelta64;
        any shape, any strides. It is not changed.
    axis : int, optional
        Axis to sort along; None flattens first.
    descending : bool
        Reverse the order: the largest key first. Equal keys still keep their order, and NaN and
        NaT are last, as NumPy 2.5 has it.
    bits : tuple of two ints, optional
        ``(low, high)``: sort only by bits `low` to ``high - 1`` of the keys, with fewer passes.
        Keys that differ only in other bits keep their order. The bits are those of a key's rank
        among all values of its type: of ``key + 128`` for int8. Where floats or times are
        `descending`, it is the rank in that order, smallest first.
    kind : {"quicksort", "heapsort", "mergesort", "stable"}, optional
    stable : bool, optional
        Accepted as by `numpy.sort`, at most one of them, and without effect: every sort here is
        stable. `algorithm` chooses the method.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``sort``.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result, with its shape and dtype; may be `a` itself.
    queue : pyopencl.CommandQueue, optional
        Where to sort; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.
    devices : sequence of str, int or Device, optional
        In place of both: devices that sort a host array together. One that is named twice counts as
        two. The first one alone sorts few keys, keys that do not fit on all, and rows by `bits` if
        there are fewer rows than devices.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the array type, shape and dtype of `a`. For device arrays the work is
        enqueued on `queue`, without waiting.

    Raises
    ------
    InvalidProblem
        For an unsupported dtype, an axis out of bounds, a wrong `kind` or `out`, or an
        array that does not fit into the device's memory and cannot be sorted in parts.
    InvalidConfig
        For an unknown algorithm or a configuration that the device cannot run; for `devices` with
        `queue` or `device`, or without any device.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    _check_kind(kind, stable)
    given = as_array(a)
    array = native(given)
    together = asked_for(devices, queue, device, [array])
    call.use(array, queue, together[0] if together else device)
    rows = Rows.of(array, axis, call)
    target = rows.target(out, given.dtype)
    problem = SortProblem(rows.length, array.dtype, rows.count, descending, bits=_pair(bits))
    how: dict[str, Any] = {"algorithm": algorithm, "config": config}
    result = None
    if len(together) > 1:
        from opencl_lab.ops.sort.shared import sort_together

        result = sort_together(problem, rows.data, target, together, **how)
    if result is not None:
        pass
    elif bits is None and not is_device_array(array) and _is_large(problem, call.device, how):
        from opencl_lab.ops.sort.out_of_core import sort_array

        result = sort_array(problem, rows.data, target, **how, queue=call.queue)
    else:
        run = SORT_SOLVER.run(
            problem, {"keys": rows.data}, out={"sorted": target}, **how, call=call
        )
        result = run.outputs["sorted"]
    if not given.dtype.isnative:
        result = result.astype(given.dtype)
    return rows.restore(result, out, call)


@replayed()
def argsort(
    call: Call,
    a: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    bits: tuple[int, int] | None = None,
    kind: str | None = None,
    stable: bool | None = None,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Return the indices that sort an array stably.

    Parameters and errors are those of `sort`, without `devices`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array, int64
        Positions along `axis`, of the shape of `a`; those of equal keys are in
        ascending order, also with `descending`.
    """
    _check_kind(kind, stable)
    array = native(as_array(a))
    call.use(array, queue, device)
    rows = Rows.of(array, axis, call)
    target = rows.target(out, np.dtype(np.int64))
    problem = SortProblem(
        rows.length, array.dtype, rows.count, descending, indices=True, bits=_pair(bits)
    )
    run = SORT_SOLVER.run(
        problem,
        {"keys": rows.data},
        algorithm=algorithm,
        config=config,
        out={"sorted_values": target},
        call=call,
    )
    return rows.restore(run.outputs["sorted_values"], out, call)


@replayed()
def sort_by_key(
    call: Call,
    keys: Any,
    values: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    bits: tuple[int, int] | None = None,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: tuple[AnyArray, AnyArray] | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[AnyArray, AnyArray]:
    """Sort keys stably and move values along with them.

    The other parameters and errors are those of `sort`, without `devices`.

    Parameters
    ----------
    keys : array_like or pyopencl.array.Array
        As in `sort`.
    values : array_like or pyopencl.array.Array
        Of the shape of `keys` and on the same side, host or device; any dtype
        except objects. Values of 1, 2, 4, 8 or 16 bytes are moved with the keys; others, such
        as structured ones, are permuted by index at the end.
    out : tuple of two arrays, optional
        Receive the results, with their shape and dtypes. Each may share memory with either input,
        but not with the other.

    Returns
    -------
    keys, values : numpy.ndarray or pyopencl.array.Array
        Both sorted by the keys.
    """
    out_keys, out_values = pair_of(out, "keys", "values")
    given, value_array = as_array(keys), as_array(values)
    key_array = native(given)
    check_sides(keys=key_array, values=value_array)
    if key_array.shape != value_array.shape:
        raise InvalidProblem(
            f"keys and values must have one shape, not {key_array.shape} and {value_array.shape}"
        )
    if value_array.dtype.hasobject:
        raise InvalidProblem("values of dtype object cannot travel with keys")
    if not value_array.dtype.itemsize:
        raise InvalidProblem("values of 0 bytes cannot travel with keys")
    call.use(key_array, queue, device)
    call.check(value_array)
    value_dtype = value_array.dtype
    if not value_dtype.isnative:  # bytes that only move, which nothing may swap
        value_array = value_array.view(f"V{value_dtype.itemsize}")
    key_rows, value_rows = Rows.of(key_array, axis, call), Rows.of(value_array, axis, call)
    apart = (key_array, value_array)
    key_target = key_rows.target(out_keys, given.dtype, *apart)
    value_target = value_rows.target(out_values, value_dtype, *apart)
    if out_keys is not None and out_values is not None and overlap(out_keys, out_values):
        raise InvalidProblem("the two arrays of out share memory")
    problem = SortProblem(
        key_rows.length, key_array.dtype, key_rows.count, descending, bits=_pair(bits)
    )
    sort_pairs = _travelling if value_array.dtype.itemsize in WORD_TYPES else _by_index
    result, moved = sort_pairs(
        problem,
        key_rows.data,
        value_rows.data,
        {"algorithm": algorithm, "config": config, "call": call},
        key_target,
        value_target,
    )
    moved = moved.view(value_dtype)
    if not given.dtype.isnative:
        result = result.astype(given.dtype)
    return (
        key_rows.restore(result, out_keys, call, *apart),
        value_rows.restore(moved, out_values, call, *apart),
    )


def _check_kind(kind: str | None, stable: bool | None) -> None:
    """Refuse what `numpy.sort` refuses; all its kinds are equivalent here."""
    if kind is not None and stable is not None:
        raise InvalidProblem("kind and stable cannot be given together")
    if kind is not None and kind not in KINDS:
        raise InvalidProblem(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")


def _pair(bits: Any) -> tuple[int, int] | None:
    if bits is None:
        return None
    try:
        low, high = map(index, bits)
    except (TypeError, ValueError):
        raise InvalidProblem(f"bits must be a pair of integers (low, high), not {bits!r}") from None
    return low, high


def _is_large(problem: SortProblem, device: Device, how: Mapping[str, Any]) -> bool:
    """Return whether the sort does not fit into the device's memory."""
    from opencl_lab.ops.sort.part_sizes import needs_parts

    return needs_parts(problem, device, how["algorithm"], how["config"])


def _travelling(
    problem: SortProblem,
    keys: AnyArray,
    values: AnyArray,
    options: Mapping[str, Any],
    *targets: AnyArray | None,
) -> tuple[AnyArray, AnyArray]:
    """Sort keys with values of a size that kernels move along with them."""
    problem = replace(problem, value_bytes=values.dtype.itemsize)
    out = dict(zip(("sorted", "sorted_values"), targets, strict=True))
    outputs = SORT_SOLVER.run(problem, {"keys": keys, "values": values}, out=out, **options).outputs
    return outputs["sorted"], outputs["sorted_values"]


def _by_index(
    problem: SortProblem,
    keys: AnyArray,
    values: AnyArray,
    options: Mapping[str, Any],
    *targets: AnyArray | None,
) -> tuple[AnyArray, AnyArray]:
    """Sort keys with positions, by which values of any size are then permuted."""
    from opencl_lab.ops.sort.gather import GATHER, GatherProblem

    order = SORT_SOLVER.run(replace(problem, indices=True), {"keys": keys}, **options).outputs
    results = []
    for source, target in zip((keys, values), targets, strict=True):
        taken = GATHER.run(
            GatherProblem(problem.n, problem.rows, source.dtype.itemsize, problem.n),
            {"source": source, "order": order["sorted_values"]},
            out={"target": target},
            call=options["call"],
        )
        results.append(taken.outputs["target"])
    return results[0].view(keys.dtype), results[1]
