"""Call keys: calls with the same key differ in their data alone, so one replays another.

A key holds shapes, strides, types and queues of arrays, which of them share memory, and the values
of all other arguments. Where an argument cannot be compared, the call has no key.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.tools import PooledBuffer

from opencl_lab.core.device import Device
from opencl_lab.runtime.results import PooledArray

DATA = {"a", "b", "bias", "c", "v", "x", "image", "input", "keys", "values", "out", "output"}
"""Parameters that are data: a key holds their shape and type. All others are options."""
SIMPLE = {type(None), str, bool, int, bytes}
"""Types of options of which equal values have the same effect."""
PAIRS = {tuple, list}
DEVICE_ARRAYS: set[type] = {cl.array.Array, PooledArray}
ARRAYS: set[type] = {np.ndarray, *DEVICE_ARRAYS}
PLACES = (cl.CommandQueue, cl.Device)
BUFFERS = {cl.Buffer, PooledBuffer}
WHOLE_BUFFER = cl.mem_info.ASSOCIATED_MEMOBJECT
"""Query for the parent of a sub-buffer; None for other buffers."""
_Place: TypeAlias = tuple[int, int, int]
"""Handles of a whole buffer and of its part in which an array lies, and where the part begins."""
MOST_CONSTANT = 1 << 16
"""Most bytes of an argument whose values belong to the key."""
ENVIRONMENT = ("OCLAB_DEVICE", "OCLAB_TUNING", "OCLAB_DATA_DIR", "OCLAB_DEVICE_BYTES")

# A look-up in `os.environ` itself takes a microsecond per name, in every call.
_variable = getattr(os.environ, "_data", os.environ).get
_device, _tuning, _data_dir, _device_bytes = map(getattr(os.environ, "encodekey", str), ENVIRONMENT)


class NoKeyError(Exception):
    """An argument cannot be compared with that of another call, so there is no key."""


def _option_key(value: Any) -> Hashable:
    """Return the key of an option; options with equal keys have the same effect."""
    kind = type(value)
    if kind in SIMPLE:
        return kind, value
    if kind is Device:
        return kind, value.handle.int_ptr
    if isinstance(value, PLACES):
        return kind, value.int_ptr
    if kind is float:
        if value != value:
            raise NoKeyError
        return kind, value, math.copysign(1.0, value)
    if kind is complex:
        return kind, _option_key(value.real), _option_key(value.imag)
    if kind in (tuple, list):
        return kind, tuple(map(_option_key, value))
    if isinstance(value, (np.dtype, type)):
        return kind, value
    if kind is dict:
        return kind, tuple((name, _option_key(item)) for name, item in value.items())
    if isinstance(value, np.generic) and value.dtype.kind in "biufc" and value == value:
        return kind, value.tobytes()
    raise NoKeyError


def _device_key(array: cl.array.Array, places: list[_Place]) -> tuple[Hashable, ...]:
    """Return the key of a device array, and append the place of its memory to `places`."""
    own = array.__dict__
    lease = own.get("_lease")
    block: Any
    if lease is not None:
        block = lease.block  # a whole buffer, made by a pool
        places.append((block.int_ptr, block.int_ptr, 0))
    elif not own["size"]:
        places.append((-id(array), 0, 0))  # it shares memory with nothing
    else:
        block = array.base_data
        if type(block) not in BUFFERS:
            raise NoKeyError
        whole = block.get_info(WHOLE_BUFFER)
        if whole is None:
            places.append((block.int_ptr, block.int_ptr, 0))
        else:
            places.append((whole.int_ptr, block.int_ptr, block.get_info(cl.mem_info.OFFSET)))
    queue, allocator = own["queue"], own["allocator"]
    return (
        own["shape"],
        own["strides"],
        own["dtype"],
        own["offset"],
        None if queue is None else queue.int_ptr,
        None if allocator is None else id(allocator),
    )


def _sharing_key(arrays: Sequence[Any], places: Sequence[_Place]) -> tuple[Hashable, ...]:
    """Return which arrays share memory: host arrays, or device arrays in `places`."""
    if places:
        if len(places) < len(arrays):
            raise NoKeyError  # some on the host, some on the device
        wholes, blocks, begins = map(list, zip(*places, strict=True))
        same = list(map(id, arrays))  # a view is not the same object, which is returned
        firsts = list(map(wholes.index, wholes))
        distances = (begin - begins[first] for begin, first in zip(begins, firsts, strict=True))
        return (*firsts, *distances, *map(blocks.index, blocks), *map(same.index, same))
    pairs = [
        array is other
        or (np.may_share_memory(array, other) and (False, array.ctypes.data == other.ctypes.data))
        for index, array in enumerate(arrays)
        for other in arrays[:index]
    ]
    return tuple(pairs) if any(pairs) else ()


def _values_key(value: Any) -> Hashable:
    """Return the key of a host argument, with its values."""
    if isinstance(value, tuple):
        return tuple(map(_values_key, value))
    if type(value) is not np.ndarray and np.ma.isMaskedArray(value):
        raise NoKeyError  # the key would lack the mask
    array = np.asarray(value)
    if array.dtype.hasobject or array.nbytes > MOST_CONSTANT:
        raise NoKeyError
    rounded = array is not value and array.dtype == np.float64
    if rounded and np.abs(array).max(initial=0) >= 2.0**53:
        raise NoKeyError  # different integers may have become one float
    return type(value), array.shape, array.dtype, array.tobytes()


def arrays_key(arrays: Sequence[Any]) -> Hashable:
    """Return the key of arrays alone, for calls of one function with the same options.

    Raises
    ------
    NoKeyError
        If one cannot be compared, or if some are on the host and some on the device.
    """
    parts: list[Any] = []
    places: list[_Place] = []
    owners: set[int] = set()
    for array in arrays:
        if type(array) is np.ndarray:
            flags = array.flags
            plain = flags.carray or (array.strides, flags.aligned, flags.writeable)
            parts += array.shape, array.dtype, plain
            if flags.owndata:
                owners.add(id(array))
        elif isinstance(array, cl.array.Array):
            parts += _device_key(array, places)
        else:
            raise NoKeyError
    # Different buffers share nothing, nor do host arrays that own their memory.
    if len(arrays) > 1 and len(owners or {whole for whole, _, _ in places}) < len(arrays):
        parts += _sharing_key(arrays, places)
    return tuple(parts)


def _is_data(value: Any, kinds: set[type]) -> bool:
    """Return whether a value is one of `kinds`, or a device array of a derived class."""
    return type(value) in kinds or (bool(kinds) and isinstance(value, cl.array.Array))


class CallKeys:
    """Makes the key of a call from the arguments of a function.

    For the arguments named in `values`, small host arrays, the key holds the values.
    """

    def __init__(self, name: str, signature: inspect.Signature, values: Sequence[str]):
        self._name = name
        # By position and by name: the types of an argument that is data.
        self._data: dict[int | str, set[type]] = {}
        self._values: set[int | str] = set()
        for position, parameter in enumerate(signature.parameters):
            kinds = ARRAYS if parameter in DATA else DEVICE_ARRAYS if parameter in values else set()
            self._data |= {position: kinds, parameter: kinds}
            if parameter in values:
                self._values |= {position, parameter}

    def data_and_values(self, options: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Return the arrays among `options` that are data, and the names of `values` arrays."""
        data: list[Any] = []
        values: list[str] = []
        for name, value in options.items():
            if _is_data(value, self._data[name]):
                data.append(value)
            elif name in self._values:
                values.append(name)
        return data, values

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Hashable, list[Any]]:
        """Return the key of a call, and its arrays; raise `NoKeyError` if it has none."""
        arrays: list[Any] = []
        data, variable = self._data, _variable
        parts = [
            self._name,
            variable(_device),
            variable(_tuning),
            variable(_data_dir),
            variable(_device_bytes),
        ]
        given: Iterable[tuple[int | str, Any]] = enumerate(args)
        if kwargs:
            given = [*given, *kwargs.items()]
        for place, value in given:
            kind = type(value)
            parts.append(place)
            if _is_data(value, data[place]):
                arrays.append(value)
            elif place in self._values:
                parts.append(_values_key(value))
            elif kind in SIMPLE:
                parts += kind, value
            elif kind in PAIRS and place == "out":
                parts += kind, len(value)
                arrays += value
            else:
                parts.append(_option_key(value))
        if not arrays:
            raise NoKeyError
        parts.append(arrays_key(arrays))
        return tuple(parts), arrays
