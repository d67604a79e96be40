"""Replay of calls: the first call with a key is recorded, further ones only enqueue.

A public function is plain code: it checks its arguments, looks for a configuration, makes views,
and runs executables. All of this depends on shapes, strides, types and options, but not on values.
So the first call is recorded while it runs: which executables it runs, on which of the caller's
arrays and on which new ones. They become one bound call. A further call with the same key takes new
memory, puts its arrays into the places of the earlier ones, and enqueues.

Work that the recording cannot see is never replayed: a recording is discarded as soon as an
executable reads memory that neither belongs to the caller nor was written by an earlier executable,
such as a result of NumPy or of pyopencl's own kernels. If ``OCLAB_REPLAY=off`` is in the
environment when the package is imported, nothing is recorded.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.options import checked
from opencl_lab.core.queues import check_process, profiles
from opencl_lab.core.systems import switched_off
from opencl_lab.runtime.arrays import is_device_array, plain_class
from opencl_lab.runtime.bound import BoundCall, Returned
from opencl_lab.runtime.cache import call_when_dropped
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.call_key import MOST_CONSTANT, PAIRS, CallKeys
from opencl_lab.runtime.device_call import DeviceCall
from opencl_lab.runtime.executable import is_in_order
from opencl_lab.runtime.freeing import call_when_freeing, free_unused
from opencl_lab.runtime.host_call import HostCall, plain_types
from opencl_lab.runtime.recording import Recording
from opencl_lab.runtime.results import attributes_of
from opencl_lab.runtime.session import new_array, session_of
from opencl_lab.runtime.waiting import call_after
from opencl_lab.tuned import database

MOST_RECORDED = 1024
"""Size of the LRU cache of recorded calls."""
TOUCH_SECONDS = 0.1
"""Shortest interval at which a recorded call and its executables are marked as recently used."""
ENABLED = not switched_off("OCLAB_REPLAY")

P = ParamSpec("P")
R = TypeVar("R")


class _Launchless:
    """A call that runs nothing, as its arrays are empty: it makes its results.

    A number stands for one of the caller's arrays.
    """

    def __init__(self, results: Sequence[int | Callable[[], Any]]):
        self._results = results

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the results."""
        return [arrays[item] if isinstance(item, int) else item() for item in self._results]


class RecordedCall:
    """A bound call of all executables that the first call of a key ran, and when it is valid.

    It returns a tuple if there are `several` results. `generation` is that of the tuned
    configurations at the time of recording.
    """

    def __init__(
        self,
        recording: Recording,
        bound: BoundCall | _Launchless,
        several: bool,
        generation: int,
    ):
        self.touched = time.monotonic()
        self.queue = recording.queue
        self.executables = tuple(run.executable for run in recording.runs)
        self.watched = tuple(item for item in self.executables if item.watched)
        self.generation = generation
        self._several = several
        self._bound = bound

    def run(self, arrays: Sequence[Any]) -> Any:
        """Repeat the call with other arrays; the errors are those of the first call."""
        results = self._bound.run(arrays)
        return tuple(results) if self._several else results[0]


class _Public(NamedTuple):
    """A public function's implementation and keys."""

    function: Callable[..., Any]
    """The implementation, which takes a `Call` first."""
    keys: CallKeys


_public: dict[Callable[..., Any], _Public] = {}
_recorded: OrderedDict[Hashable, RecordedCall] = OrderedDict()
_lock = threading.Lock()


def forget() -> None:
    """Drop all recorded calls."""
    with _lock:
        _recorded.clear()


def free_memory() -> None:
    """Free device memory that is held for further calls and not in use.

    The next calls take a little longer.
    """
    check_process()
    free_unused()


def _forget_what_runs(dropped: Any) -> None:
    """Drop the recorded calls that hold an executable."""
    with _lock:
        for key, recorded in list(_recorded.items()):
            if dropped in recorded.executables:
                del _recorded[key]


call_when_dropped(_forget_what_runs)
call_when_freeing(lambda seconds: forget())
database.call_when_changed(forget)


def replayed(
    *values: str,
) -> Callable[[Callable[Concatenate[Call, P], R]], Callable[P, R]]:
    """Return a decorator that turns a function whose first parameter is a `Call` into a public one.

    The public function has only the other parameters, which are `checked`. Its first call with a
    key is recorded, and further ones replay it. `wait_for` is served here: `function` has it, if at
    all, without effect. For the arguments named in `values`, small host
    arrays, the key holds the values; arrays made from them are passed to `Call.constants`.
    """

    def decorate(function: Callable[Concatenate[Call, P], R]) -> Callable[P, R]:
        whole = inspect.signature(function)
        first, *others = whole.parameters.values()
        signature = whole.replace(parameters=others)
        function = checked(function)
        keys = CallKeys(f"{function.__module__}.{function.__qualname__}", signature, values)

        @wraps(function)
        def public(*args: P.args, **kwargs: P.kwargs) -> Any:
            if "wait_for" in kwargs and kwargs["wait_for"] is not None:
                return call_after(public, args, kwargs)
            if not ENABLED:
                return _called(function, Call(), args, kwargs)
            try:
                key, arrays = keys.of(args, kwargs)
            except Exception:  # the function raises its own error
                return _called(function, Call(), args, kwargs)
            if profiles:  # the library's queues are other ones
                key = "profiled", key
            recorded = _recorded.get(key)
            if recorded is not None and _is_current(key, recorded):
                return recorded.run(arrays)
            result, recorded = _record(function, args, kwargs, arrays)
            if recorded is not None:
                _keep(key, recorded)
            return result

        public.__signature__ = signature  # type: ignore[attr-defined]
        annotations = function.__annotations__.items()
        public.__annotations__ = {name: item for name, item in annotations if name != first.name}
        _public[public] = _Public(function, keys)
        return public

    return decorate


def is_replayed(function: Callable[..., Any]) -> bool:
    """Return whether calls of a function are replayed."""
    return function in _public


def implementation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the implementation of a public function, which takes a `Call` first."""
    return _public[function].function


def data_and_values(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[list[Any], list[str]]:
    """Return the arrays among options that are data of a call, and the names of other arrays.

    The key of the call holds the values of those others.
    """
    return _public[function].keys.data_and_values(options)


def record(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, RecordedCall | None, list[Any]]:
    """Call a public function; return its result, the recorded call, and its array arguments.

    The recorded call is None if the call cannot be replayed.
    """
    inner, keys = _public[function]
    try:
        _, arrays = keys.of(args, kwargs)
    except Exception:  # the function raises its own error
        return _called(inner, Call(), args, kwargs), None, []
    return *_record(inner, args, kwargs, arrays), arrays


def _called(
    function: Callable[..., Any], call: Call, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call a function with device arrays of pyopencl's own class in place of derived ones."""
    originals: dict[int, tuple[Any, Any]] = {}  # with what stands for them, by its `id`

    def stand_in(value: Any) -> Any:
        plain = plain_class(value)
        if plain is not value:
            originals[id(plain)] = plain, value
        return plain

    named = {name: stand_in(value) for name, value in kwargs.items()}
    if type(named.get("out")) in PAIRS:
        named["out"] = tuple(map(stand_in, named["out"]))
    result = function(call, *map(stand_in, args), **named)
    if not originals:
        return result
    several = isinstance(result, tuple)
    found = [originals.get(id(item), (None, item))[1] for item in (result if several else [result])]
    return tuple(found) if several else found[0]


def _record(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    arrays: Sequence[Any],
) -> tuple[Any, RecordedCall | None]:
    generation = database.generation()
    recording = Recording(arrays)
    result = _called(function, Call(recording=recording), args, kwargs)
    return result, _recorded_call(recording, arrays, result, generation)


def _is_current(key: Hashable, recorded: RecordedCall) -> bool:
    """Return whether a recorded call is still valid, and mark it as recently used."""
    for executable in recorded.watched:
        if not executable.current:
            return False
    now = time.monotonic()
    if now > recorded.touched + TOUCH_SECONDS:
        if recorded.generation != database.generation() or any(
            executable.dropped for executable in recorded.executables
        ):
            return False
        recorded.touched = now
        _keep(key, recorded)
        if recorded.queue is not None:
            session = session_of(recorded.queue)
            for executable in recorded.executables:
                session.touch(executable)
    return True


def _keep(key: Hashable, recorded: RecordedCall) -> None:
    with _lock:
        _recorded[key] = recorded
        _recorded.move_to_end(key)
        if len(_recorded) > MOST_RECORDED:
            _recorded.popitem(last=False)
    if recorded.generation != database.generation():  # changed since it was recorded
        forget()


def _recorded_call(
    recording: Recording, arrays: Sequence[Any], result: Any, generation: int
) -> RecordedCall | None:
    """Return the recorded call, or None if the call cannot be replayed."""
    several = isinstance(result, tuple)
    returned = result if several else (result,)
    if recording.lost or sum(array.nbytes for array in recording.constants) > MOST_CONSTANT:
        return None
    if not all(isinstance(array, np.ndarray) or is_device_array(array) for array in returned):
        return None  # a number
    if recording.queue is None or not any(array.size for array in returned):
        made = [_made_alike(recording, arrays, array) for array in returned]
        whole = [item for item in made if item is not None]
        if len(whole) < len(made):
            return None
        return RecordedCall(recording, _Launchless(whole), several, generation)
    if not is_in_order(recording.queue):
        return None
    results, fresh = [], recording.fresh
    for array in returned:
        same_side = is_device_array(array) == is_device_array(arrays[0])
        place = recording.place(array) if same_side else None
        if place is None:
            return None
        if place < len(arrays):
            written = any(place in run.outputs.values() for run in recording.runs)
            if not written or array is not arrays[place]:
                return None
            results.append(Returned(place))
            continue
        index = place - len(arrays)
        if array.nbytes != fresh[index].nbytes:
            return None
        fresh[index] = replace(fresh[index], shape=tuple(array.shape), dtype=array.dtype)
        results.append(Returned(place, attributes_of(array) if is_device_array(array) else {}))
    if len({item.place for item in results}) < len(results):
        return None
    try:
        bound: BoundCall
        what = (recording.queue, recording.runs, len(arrays), fresh, results)
        if is_device_array(arrays[0]):
            bound = DeviceCall(*what, [array.base_data for array in recording.constants])
        else:
            bound = HostCall(*what, recording.constants, types=plain_types(arrays))
        return RecordedCall(recording, bound, several, generation)
    except cl.Error:  # no memory for it: the result is there, and the next call is a first one
        return None


def _made_alike(
    recording: Recording, arrays: Sequence[Any], result: Any
) -> int | Callable[[], Any] | None:
    """Return the number of an array that is a result into which no kernel wrote, or its maker.

    None if it may hold what something else wrote.
    """
    for index, array in enumerate(arrays):
        if array is result:
            return None if array.size else index
    if result.size and (recording.place(result) or 0) < len(arrays):
        return None
    if isinstance(result, np.ndarray):
        return partial(np.empty, result.shape, result.dtype)
    if result.size:
        return partial(new_array, result.queue, result.shape, result.dtype, result.allocator)
    return partial(_empty, attributes_of(result))


def _empty(attributes: dict[str, Any]) -> cl.array.Array:
    array = cl.array.Array.__new__(cl.array.Array)
    vars(array).update(attributes, base_data=None, events=[])
    return array
