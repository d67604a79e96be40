"""Calls that are repeated: what the first of a kind has settled, the next ones only enqueue.

A public function is written once, as a user would read it: it checks its arguments, looks for a
configuration, makes views, and runs executables. All of this depends on shapes, strides, types
and options, and not on values. So the first call of a kind is recorded while it runs: which
executables it runs, on which of the caller's arrays and on which new ones. A further call takes new
memory, puts its own arrays into the places of the earlier ones, and enqueues.

What the recording cannot see is never replayed: it is thrown away as soon as an executable reads
memory that neither belongs to the caller nor was written by an earlier executable, such as a
result of NumPy or of pyopencl's own kernels. So far calls are replayed on request only, with
``OCLAB_REPLAY=on``.
"""

from __future__ import annotations

import inspect
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.tools import PooledBuffer

from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.execute import enqueue_steps, execute
from opencl_lab.runtime.recording import Fresh, Recorder, Step, recording
from opencl_lab.runtime.session import free_pools
from opencl_lab.tuning import database

__all__ = ["forget", "free_memory", "replayed"]

MOST_RECIPES = 1024
DATA = {"a", "b", "c", "x", "image", "keys", "values", "out", "out_keys", "out_values"}
"""Parameters that are data: a kind of call knows their shape and type. All others are options."""
MOST_CONSTANT = 1 << 16
"""Bytes of arguments whose values belong to the kind of a call."""
ENVIRONMENT = ("OCLAB_DEVICE", "OCLAB_TUNING", "OCLAB_DATA_DIR")

F = TypeVar("F", bound=Callable[..., Any])


def enabled() -> bool:
    """Return whether calls are replayed: only with ``OCLAB_REPLAY=on``."""
    return os.environ.get("OCLAB_REPLAY", "").lower() in ("on", "1", "yes")


class _Unique(Exception):
    """A call with an argument of which nobody knows whether it comes again."""


@dataclass(frozen=True)
class _Result:
    """One array that a call returns: one of the caller's, or a view of a new one."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    attributes: dict[str, Any] = field(default_factory=dict)  # of a device array


@dataclass(frozen=True)
class _Recipe:
    """What calls of one kind do.

    Attributes
    ----------
    steps : tuple of Step
    fresh : tuple of Fresh
    constants : tuple of arrays
        The last one first.
    results : tuple of _Result
    several : bool
        Whether the call returns a tuple.
    queue : pyopencl.CommandQueue
    generation : int
        Of the tuned configurations that were asked.
    conditions : tuple of callables
        What else must hold.
    """

    steps: tuple[Step, ...]
    fresh: tuple[Fresh, ...]
    constants: tuple[Any, ...]
    results: tuple[_Result, ...]
    several: bool
    queue: cl.CommandQueue
    generation: int
    conditions: tuple[Callable[[], bool], ...]

    @property
    def current(self) -> bool:
        """Whether a call would settle the same today."""
        return (
            self.generation == database.generation()
            and all(step.executable.current for step in self.steps)
            and all(holds() for holds in self.conditions)
        )

    def run(self, arrays: Sequence[Any]) -> Any:
        """Do it again with arrays of the caller's."""
        if is_device_array(arrays[0]):
            made, event = enqueue_steps(self.queue, self.steps, arrays, self.fresh, self.constants)
            results = tuple(self._device_result(item, arrays, made, event) for item in self.results)
        else:
            made = [np.empty(item.shape, item.dtype) for item in self.fresh]
            everything = [*arrays, *made, *self.constants]
            for step in self.steps:
                execute(
                    step.executable,
                    {name: everything[place] for name, place in step.inputs.items()},
                    self.queue,
                    {name: everything[place] for name, place in step.outputs.items()},
                )
            results = tuple(
                everything[item.place]
                if item.place < len(arrays)
                else everything[item.place].view(item.dtype).reshape(item.shape)
                for item in self.results
            )
        return results if self.several else results[0]

    @staticmethod
    def _device_result(
        result: _Result, arrays: Sequence[Any], made: Sequence[Any], event: cl.Event
    ) -> Any:
        if result.place < len(arrays):
            arrays[result.place].add_event(event)
            return arrays[result.place]
        array = cl.array.Array.__new__(cl.array.Array)
        # Its constructor takes longer than all else that a call does.
        vars(array).update(result.attributes)
        array.base_data = made[result.place - len(arrays)]
        array.events = [event]
        return array


_recipes: OrderedDict[Hashable, _Recipe] = OrderedDict()
_lock = threading.Lock()


def forget() -> None:
    """Drop everything that was recorded."""
    with _lock:
        _recipes.clear()


def free_memory() -> None:
    """Give back the memory of devices that is kept for further calls and not in use.

    The next calls take a little longer.
    """
    forget()
    free_pools()


def _plain(value: Any) -> Hashable:
    """Return what tells an option from another one of the same effect or not."""
    kind = type(value)
    if value is None or kind in (str, bool, int, bytes):
        return kind, value
    if kind is float:
        if math.isnan(value):
            raise _Unique
        return kind, value, math.copysign(1.0, value)
    if kind in (tuple, list):
        return kind, tuple(map(_plain, value))
    if isinstance(value, cl.CommandQueue):
        return value.int_ptr
    raise _Unique


def _device_kind(array: cl.array.Array) -> Hashable:
    queue, allocator = array.queue, array.allocator
    if not array.size or not isinstance(array.base_data, (cl.Buffer, PooledBuffer)):
        raise _Unique
    return (
        array.shape,
        array.strides,
        array.dtype,
        array.offset,
        None if queue is None else queue.int_ptr,
        None if allocator is None else id(allocator),
    )


def _host_kind(array: np.ndarray[Any, Any]) -> Hashable:
    if not array.size:
        raise _Unique
    flags = array.flags
    return array.shape, array.strides, array.dtype, flags.aligned, flags.writeable


def _sharing(arrays: Sequence[Any]) -> Hashable:
    """Return which arrays share memory."""
    if len(arrays) < 2:
        return None
    if is_device_array(arrays[0]):
        memory = [array.base_data for array in arrays]
        return tuple(memory.index(item) for item in memory)
    return tuple(
        (array.ctypes.data == other.ctypes.data, np.may_share_memory(array, other))
        for index, array in enumerate(arrays)
        for other in arrays[:index]
    )


def _surroundings() -> Hashable:
    return tuple(map(os.environ.get, ENVIRONMENT))


def _values(value: Any) -> Hashable:
    """Return all that a host argument says, as its values belong to the kind of the call."""
    if isinstance(value, tuple):
        return tuple(map(_values, value))
    array = np.asarray(value)
    if array.dtype.hasobject or array.nbytes > MOST_CONSTANT:
        raise _Unique
    return type(value), array.shape, array.dtype, array.tobytes()


class _Signature:
    """How the arguments of one function tell what kind of call it is."""

    def __init__(self, function: Callable[..., Any], values: Sequence[str]):
        self._name = f"{function.__module__}.{function.__qualname__}"
        names = list(inspect.signature(function).parameters)
        self._place = {name: place for place, name in enumerate(names)}
        self._values = {self._place[name] for name in values}
        self._data = {place for name, place in self._place.items() if name in DATA}

    def kind_or_none(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Hashable | None, list[Any]]:
        """Return what `kind` does, and None where there is none or an argument is wrong."""
        try:
            kind, arrays = self.kind(args, kwargs)
            hash(kind)
        except Exception:  # the function refuses it in its own words
            return None, []
        return kind, arrays

    def kind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Hashable, list[Any]]:
        """Return what all calls of a kind share, and the arrays; raise `_Unique` if nothing."""
        arrays: list[Any] = []
        parts: list[Hashable] = [self._name]
        given = [*enumerate(args), *((self._place[name], kwargs[name]) for name in sorted(kwargs))]
        for place, value in given:
            if type(value) is cl.array.Array and (place in self._data or place in self._values):
                parts.append((place, _device_kind(value)))
                arrays.append(value)
            elif place in self._values:
                parts.append((place, _values(value)))
            elif type(value) is np.ndarray and place in self._data:
                parts.append((place, _host_kind(value)))
                arrays.append(value)
            else:
                parts.append((place, _plain(value)))
        if not arrays or any(type(array) is not type(arrays[0]) for array in arrays):
            raise _Unique
        return (*parts, _sharing(arrays), _surroundings()), arrays


def replayed(*values: str) -> Callable[[F], F]:
    """Return a decorator that lets further calls of a kind enqueue what the first has settled.

    Parameters
    ----------
    *values : str
        Arguments, on the host and small, whose values make a difference to what is run. Arrays
        that are made of them are told by `recording.note_constants`.
    """

    def decorate(function: F) -> F:
        signature = _Signature(function, values)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            kind, arrays = signature.kind_or_none(args, kwargs) if enabled() else (None, [])
            if kind is None:
                return function(*args, **kwargs)
            recipe = _recipes.get(kind)
            if recipe is not None and recipe.current:
                return recipe.run(arrays)
            generation = database.generation()
            with recording(arrays) as recorder:
                result = function(*args, **kwargs)
            if recorder is not None:
                made = _recipe(recorder, arrays, result, generation)
                if made is not None:
                    _keep(kind, made)
            return result

        return cast(F, call)

    return decorate


def _keep(kind: Hashable, recipe: _Recipe) -> None:
    with _lock:
        _recipes[kind] = recipe
        if len(_recipes) > MOST_RECIPES:
            _recipes.popitem(last=False)


def _recipe(
    recorder: Recorder, arrays: Sequence[Any], result: Any, generation: int
) -> _Recipe | None:
    """Return what was recorded, or None if it cannot be replayed."""
    several = isinstance(result, tuple)
    returned = result if several else (result,)
    if recorder.lost or not recorder.steps or recorder.queue is None:
        return None
    if sum(array.nbytes for array in recorder.constants) > MOST_CONSTANT:
        return None
    results = []
    for array in returned:
        place = recorder.place(array) if type(array) is type(arrays[0]) else None
        if place is None:
            return None
        if place < len(arrays):
            written = any(place in step.outputs.values() for step in recorder.steps)
            if not written or array is not arrays[place]:
                return None
            results.append(_Result(place, tuple(array.shape), array.dtype))
            continue
        fresh = recorder.fresh[place - len(arrays)]
        if array.nbytes != fresh.nbytes:
            return None
        attributes = {}
        if is_device_array(array):
            attributes = {**vars(array), "base_data": None, "events": []}
        results.append(_Result(place, tuple(array.shape), array.dtype, attributes))
    return _Recipe(
        tuple(recorder.steps),
        tuple(recorder.fresh),
        tuple(reversed(recorder.constants)),
        tuple(results),
        several,
        recorder.queue,
        generation,
        tuple(recorder.conditions),
    )
