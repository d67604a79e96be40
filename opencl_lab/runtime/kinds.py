"""What tells calls of one kind from others: all that they may not differ in to be replayed.

A kind knows shapes, strides, types and queues of arrays, which of them share memory, and the values
of everything else. What nobody can compare, such as an array among the options, has no kind.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.tools import PooledBuffer

from opencl_lab.core.device import Device
from opencl_lab.runtime.results import PooledArray

DATA = {
    "a", "b", "bias", "c", "v", "x", "image", "keys", "values",
    "out", "out_keys", "out_values", "out_indices",
}  # fmt: skip
"""Parameters that are data: a kind of call knows their shape and type. All others are options."""
SIMPLE = {type(None), str, bool, int, bytes}
"""Types of options whose values are equal only if they say the same."""
DEVICE_ARRAYS = {cl.array.Array, PooledArray}
BUFFERS = {cl.Buffer, PooledBuffer}
WHOLE_BUFFER = cl.mem_info.ASSOCIATED_MEMOBJECT
"""Of which a buffer is a part; None if of none."""
MOST_CONSTANT = 1 << 16
"""Bytes of arguments whose values belong to the kind of a call."""
ENVIRONMENT = ("OCLAB_DEVICE", "OCLAB_TUNING", "OCLAB_DATA_DIR", "OCLAB_DEVICE_BYTES")

# To ask `os.environ` itself takes a microsecond for each name, and this is done in every call.
_variable = getattr(os.environ, "_data", os.environ).get
_names = tuple(map(getattr(os.environ, "encodekey", str), ENVIRONMENT))


class _Unique(Exception):
    """A call with an argument of which nobody knows whether it comes again."""


def _plain(value: Any) -> Hashable:
    """Return what tells an option from another one of the same effect or not."""
    kind = type(value)
    if kind in SIMPLE:
        return kind, value
    if kind is float:
        if value != value:
            raise _Unique
        return kind, value, math.copysign(1.0, value)
    if kind is complex:
        return kind, _plain(value.real), _plain(value.imag)
    if kind in (tuple, list):
        return kind, tuple(map(_plain, value))
    if kind is dict:
        return kind, tuple((name, _plain(item)) for name, item in value.items())
    if isinstance(value, np.generic) and value.dtype.kind in "biufc" and value == value:
        return kind, value.tobytes()
    if isinstance(value, cl.CommandQueue):
        return value.int_ptr
    if kind is Device:
        return kind, value.handle.int_ptr
    raise _Unique


def _device_kind(array: cl.array.Array, addresses: list[int]) -> tuple[Hashable, ...]:
    """Return what tells a device array from others, and add the address of its memory to a list."""
    own = array.__dict__
    lease = own.get("_lease")
    block: Any
    if lease is not None:
        block = lease.block  # which a pool has made as a whole
    else:
        block = array.base_data
        plain = type(block) in BUFFERS and own["size"]
        if not plain or block.get_info(WHOLE_BUFFER):  # parts of one buffer may overlap
            raise _Unique
    addresses.append(block.int_ptr)
    queue, allocator = own["queue"], own["allocator"]
    return (
        own["shape"],
        own["strides"],
        own["dtype"],
        own["offset"],
        None if queue is None else queue.int_ptr,
        None if allocator is None else id(allocator),
    )


def _host_kind(array: np.ndarray[Any, Any]) -> tuple[Hashable, ...]:
    if not array.size:
        raise _Unique
    flags = array.flags
    return array.shape, array.strides, array.dtype, flags.aligned, flags.writeable


def _sharing(arrays: Sequence[Any], addresses: Sequence[int]) -> tuple[Hashable, ...]:
    """Return which arrays share memory: of the host, or of the device at addresses."""
    if len(arrays) < 2 or len(set(addresses)) == len(arrays):  # most calls on the device
        return ()
    if addresses:
        if len(addresses) < len(arrays):
            raise _Unique  # some of the host, some of the device
        same = list(map(id, arrays))  # else a view of it, and the caller wants his own object back
        return (*map(addresses.index, addresses), *map(same.index, same))
    if len(arrays) == 2 and not np.may_share_memory(*arrays):  # most others
        return ()
    return tuple(
        np.may_share_memory(array, other)
        and (array is other, array is other or array.ctypes.data == other.ctypes.data)
        for index, array in enumerate(arrays)
        for other in arrays[:index]
    )


def _values(value: Any) -> Hashable:
    """Return all that a host argument says, as its values belong to the kind of the call."""
    if isinstance(value, tuple):
        return tuple(map(_values, value))
    if type(value) is not np.ndarray and np.ma.isMaskedArray(value):
        raise _Unique  # its values do not tell the mask
    array = np.asarray(value)
    if array.dtype.hasobject or array.nbytes > MOST_CONSTANT:
        raise _Unique
    return type(value), array.shape, array.dtype, array.tobytes()


def kinds_of(arrays: Sequence[Any], count: int) -> Hashable:
    """Return what calls of one function and of the same options share, or None.

    So many of the caller's arrays as `count` says are arguments and no options.
    """
    parts: list[Any] = [count]
    addresses: list[int] = []
    try:
        for array in arrays:
            if type(array) in DEVICE_ARRAYS:
                parts += _device_kind(array, addresses)
            elif type(array) is np.ndarray:
                parts += _host_kind(array)
            else:
                return None
        parts += _sharing(arrays, addresses)
        return tuple(parts)
    except _Unique:
        return None


class Signature:
    """How the arguments of one function tell what kind of call it is."""

    def __init__(self, function: Callable[..., Any], values: Sequence[str]):
        self._name = f"{function.__module__}.{function.__qualname__}"
        names = list(inspect.signature(function).parameters)
        self._place = {name: place for place, name in enumerate(names)}
        self._values = {self._place[name] for name in values}
        self._data = {place for name, place in self._place.items() if name in DATA}
        self._arrays = self._data | self._values

    def data_and_values(self, options: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Return the arrays among `options` that `kind` would return, and names of the others."""
        data: list[Any] = []
        values: list[str] = []
        for name, value in options.items():
            place, on_device = self._place[name], type(value) in DEVICE_ARRAYS
            if (on_device and place in self._arrays) or (
                type(value) is np.ndarray and place in self._data
            ):
                data.append(value)
            elif place in self._values:
                values.append(name)
        return data, values

    def kind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Hashable, list[Any]]:
        """Return what all calls of a kind share, and the arrays; raise `_Unique` if nothing."""
        arrays: list[Any] = []
        addresses: list[int] = []
        parts: list[Any] = [self._name, *map(_variable, _names)]
        given: Iterable[tuple[int, Any]] = enumerate(args)
        if kwargs:
            places = [self._place[name] for name in kwargs]
            given = [*given, *zip(places, kwargs.values(), strict=True)]
        for place, value in given:
            kind = type(value)
            parts.append(place)
            if kind in DEVICE_ARRAYS and place in self._arrays:
                parts += _device_kind(value, addresses)
                arrays.append(value)
            elif place in self._values:
                parts.append(_values(value))
            elif kind in SIMPLE:
                parts += kind, value
            elif kind is np.ndarray and place in self._data:
                parts += _host_kind(value)
                arrays.append(value)
            else:
                parts.append(_plain(value))
        if not arrays:
            raise _Unique
        parts += _sharing(arrays, addresses)
        return tuple(parts), arrays
