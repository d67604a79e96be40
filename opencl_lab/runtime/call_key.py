"""Call keys: calls with the same key differ in their data alone, so one replays another.

A key holds shapes, strides, types and queues of arrays, which of them share memory, and the values
of all other arguments. Where an argument cannot be compared, the call has no key.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.tools import PooledBuffer

from opencl_lab.core.device import Device
from opencl_lab.runtime.results import PooledArray

DATA = {"a", "b", "bias", "c", "v", "x", "image", "keys", "values", "out"}
"""Parameters that are data: a key holds their shape and type. All others are options."""
SIMPLE = {type(None), str, bool, int, bytes}
"""Types of options of which equal values have the same effect."""
PAIRS = {tuple, list}
DEVICE_ARRAYS = {cl.array.Array, PooledArray}
BUFFERS = {cl.Buffer, PooledBuffer}
WHOLE_BUFFER = cl.mem_info.ASSOCIATED_MEMOBJECT
"""Query for the parent of a sub-buffer; None for other buffers."""
MOST_CONSTANT = 1 << 16
"""Most bytes of an argument whose values belong to the key."""
ENVIRONMENT = ("OCLAB_DEVICE", "OCLAB_TUNING", "OCLAB_DATA_DIR", "OCLAB_DEVICE_BYTES")

# A look-up in `os.environ` itself takes a microsecond per name, in every call.
_variable = getattr(os.environ, "_data", os.environ).get
_names = tuple(map(getattr(os.environ, "encodekey", str), ENVIRONMENT))


class NoKeyError(Exception):
    """An argument cannot be compared with that of another call, so there is no key."""


def _option_key(value: Any) -> Hashable:
    """Return the key of an option; options with equal keys have the same effect."""
    kind = type(value)
    if kind in SIMPLE:
        return kind, value
    if kind is float:
        if value != value:
            raise NoKeyError
        return kind, value, math.copysign(1.0, value)
    if kind is complex:
        return kind, _option_key(value.real), _option_key(value.imag)
    if kind in (tuple, list):
        return kind, tuple(map(_option_key, value))
    if kind is dict:
        return kind, tuple((name, _option_key(item)) for name, item in value.items())
    if isinstance(value, np.generic) and value.dtype.kind in "biufc" and value == value:
        return kind, value.tobytes()
    if isinstance(value, cl.CommandQueue):
        return value.int_ptr
    if kind is Device:
        return kind, value.handle.int_ptr
    raise NoKeyError


def _device_key(array: cl.array.Array, addresses: list[int]) -> tuple[Hashable, ...]:
    """Return the key of a device array, and append the address of its memory to `addresses`."""
    own = array.__dict__
    lease = own.get("_lease")
    block: Any
    if lease is not None:
        block = lease.block  # a whole buffer, made by a pool
    else:
        block = own["base_data"]
        plain = type(block) in BUFFERS and own["size"]
        if not plain or block.get_info(WHOLE_BUFFER):  # sub-buffers may overlap
            raise NoKeyError
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


def _host_key(array: Any) -> tuple[Hashable, ...]:
    if type(array) is not np.ndarray or not array.size:
        raise NoKeyError
    flags = array.flags
    return array.shape, array.strides, array.dtype, flags.aligned, flags.writeable


def _sharing_key(arrays: Sequence[Any], addresses: Sequence[int]) -> tuple[Hashable, ...]:
    """Return which arrays share memory: host arrays, or device arrays at `addresses`."""
    if len(arrays) < 2 or len(set(addresses)) == len(arrays):  # most calls on the device
        return ()
    if addresses:
        if len(addresses) < len(arrays):
            raise NoKeyError  # some on the host, some on the device
        same = list(map(id, arrays))  # a view is not the same object, which is returned
        return (*map(addresses.index, addresses), *map(same.index, same))
    if len(arrays) == 2 and not np.may_share_memory(*arrays):  # most calls on the host
        return ()
    return tuple(
        np.may_share_memory(array, other)
        and (array is other, array is other or array.ctypes.data == other.ctypes.data)
        for index, array in enumerate(arrays)
        for other in arrays[:index]
    )


def _values_key(value: Any) -> Hashable:
    """Return the key of a host argument, with its values."""
    if isinstance(value, tuple):
        return tuple(map(_values_key, value))
    if type(value) is not np.ndarray and np.ma.isMaskedArray(value):
        raise NoKeyError  # the key would lack the mask
    array = np.asarray(value)
    if array.dtype.hasobject or array.nbytes > MOST_CONSTANT:
        raise NoKeyError
    return type(value), array.shape, array.dtype, array.tobytes()


def arrays_key(arrays: Sequence[Any], count: int) -> Hashable:
    """Return the key of arrays alone, for calls of one function with the same options; or None.

    The first `count` arrays are arguments, the others options.
    """
    parts: list[Any] = [count]
    addresses: list[int] = []
    try:
        for array in arrays:
            on_device = type(array) in DEVICE_ARRAYS
            parts += _device_key(array, addresses) if on_device else _host_key(array)
        parts += _sharing_key(arrays, addresses)
        return tuple(parts)
    except NoKeyError:
        return None


def unpacked(out: Any) -> list[Any]:
    """Return the arrays of an argument `out` as a list: none, one, or those of a pair."""
    return list(out) if type(out) in PAIRS else [] if out is None else [out]


class Keys:
    """Makes the key of a call from the arguments of a function.

    For the arguments named in `values`, small host arrays, the key holds the values.
    """

    def __init__(self, name: str, signature: inspect.Signature, values: Sequence[str]):
        self._name = name
        self._place = {name: place for place, name in enumerate(signature.parameters)}
        self._values = {self._place[name] for name in values}
        self._data = {place for name, place in self._place.items() if name in DATA}
        self._arrays = self._data | self._values
        self._out = self._place.get("out")

    def data_and_values(self, options: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Return the arrays among `options` that are data, and the names of `values` arrays."""
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

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Hashable, list[Any]]:
        """Return the key of a call, and its arrays; raise `NoKeyError` if it has none."""
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
                parts += _device_key(value, addresses)
                arrays.append(value)
            elif place in self._values:
                parts.append(_values_key(value))
            elif kind in SIMPLE:
                parts += kind, value
            elif kind is np.ndarray and place in self._data:
                parts += _host_key(value)
                arrays.append(value)
            elif kind in PAIRS and place == self._out:
                parts.append(kind)
                for array in value:
                    on_device = type(array) in DEVICE_ARRAYS
                    parts += _device_key(array, addresses) if on_device else _host_key(array)
                arrays += value
            else:
                parts.append(_option_key(value))
        if not arrays:
            raise NoKeyError
        parts += _sharing_key(arrays, addresses)
        return tuple(parts), arrays
