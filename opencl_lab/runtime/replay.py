"""Calls that are repeated: what the first of a kind has worked out, the next ones only enqueue.

A public function is written once, as a user would read it: it checks its arguments, looks for a
configuration, makes views, and runs executables. All of this depends on shapes, strides, types
and options, and not on values. So the first call of a kind is recorded while it runs: which
executables it runs, on which of the caller's arrays and on which new ones. A further call takes new
memory, puts its own arrays into the places of the earlier ones, and enqueues.

What the recording cannot see is never replayed: it is thrown away as soon as an executable reads
memory that neither belongs to the caller nor was written by an earlier executable, such as a
result of NumPy or of pyopencl's own kernels. ``OCLAB_REPLAY=off`` in the environment, when the
package is imported, lets every call work everything out anew.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from opencl_lab.core.template import LOOK_INTERVAL
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.bound import BoundCall, Result
from opencl_lab.runtime.device_call import DeviceCall
from opencl_lab.runtime.executable import is_in_order
from opencl_lab.runtime.host_call import HostCall
from opencl_lab.runtime.kept import call_when_dropped, call_when_freeing, free_kept
from opencl_lab.runtime.kinds import MOST_CONSTANT, Signature
from opencl_lab.runtime.recording import LOCAL, Recorder, recording
from opencl_lab.runtime.results import attributes_of
from opencl_lab.runtime.session import session_of
from opencl_lab.tuned import database

MOST_RECIPES = 1024
ENABLED = os.environ.get("OCLAB_REPLAY", "").lower() not in ("off", "0", "no")

F = TypeVar("F", bound=Callable[..., Any])


class RecordedCall:
    """What calls of one kind do, as recorded at the first one.

    It returns a tuple if there are `several` results. The `generation` is that of the tuned
    configurations that were asked.
    """

    def __init__(
        self,
        recorder: Recorder,
        arrays: Sequence[Any],
        results: Sequence[Result],
        several: bool,
        generation: int,
    ):
        assert recorder.queue is not None
        self.looked = time.monotonic()
        self.queue = recorder.queue
        self.executables = tuple(run.executable for run in recorder.steps)
        self.generation = generation
        self.conditions = tuple(recorder.conditions)
        self._several = several
        bound = (self.queue, recorder.steps, len(arrays), recorder.fresh, results)
        self._bound: BoundCall
        if is_device_array(arrays[0]):
            memory = [array.base_data for array in recorder.constants]
            # Results of the pool make their event once they are asked for it.
            needed = any(
                item.place < len(arrays)
                or recorder.fresh[item.place - len(arrays)].allocator is not None
                for item in results
            )
            self._bound = DeviceCall(*bound, memory, needs_event=needed)
        else:
            shared = all(a.flags.c_contiguous and a.flags.writeable for a in arrays)
            self._bound = HostCall(*bound, recorder.constants, in_place=shared)

    def run(self, arrays: Sequence[Any]) -> Any:
        """Do it again with other arrays of the caller's; the errors are those of the first call."""
        results = self._bound.run(arrays)
        return tuple(results) if self._several else results[0]


_signatures: dict[Callable[..., Any], Signature] = {}
_recipes: OrderedDict[Hashable, RecordedCall] = OrderedDict()
_lock = threading.Lock()


def forget() -> None:
    """Drop everything that was recorded."""
    with _lock:
        _recipes.clear()


def free_memory() -> None:
    """Give back the memory of devices that is kept for further calls and not in use.

    The next calls take a little longer.
    """
    free_kept()


def _forget_what_runs(dropped: Any) -> None:
    """Drop the recordings that would keep an executable alive."""
    with _lock:
        for kind, recipe in list(_recipes.items()):
            if dropped in recipe.executables:
                del _recipes[kind]


call_when_dropped(_forget_what_runs)
call_when_freeing(lambda patience: forget())


def replayed(*values: str) -> Callable[[F], F]:
    """Return a decorator that lets further calls of a kind enqueue what the first has worked out.

    Of the arguments `values`, on the host and small, the values make a difference to what is run.
    Arrays that are made of them are told by `recording.note_constants`.
    """

    def decorate(function: F) -> F:
        signature = Signature(function, values)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            # Inside of another call each step of its own is recorded.
            if not ENABLED or LOCAL.recorder is not None:
                return function(*args, **kwargs)
            try:
                kind, arrays = signature.kind(args, kwargs)
            except Exception:  # the function refuses it in its own words
                return function(*args, **kwargs)
            recipe = _recipes.get(kind)
            if recipe is not None and _is_current(kind, recipe):
                return recipe.run(arrays)
            result, made = _recorded(function, args, kwargs, arrays)
            if made is not None:
                _keep(kind, made)
            return result

        _signatures[call] = signature
        return cast(F, call)

    return decorate


def is_replayed(function: Callable[..., Any]) -> bool:
    """Return whether calls of a function are replayed."""
    return function in _signatures


def data_and_values(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[list[Any], list[str]]:
    """Return the arrays among options that are data of a call, and the names of other arrays.

    The values of these are part of the kind of a call.
    """
    return _signatures[function].data_and_values(options)


def record(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, RecordedCall | None, list[Any]]:
    """Call a function that is replayed; return its result, what it did, and its arrays.

    What it did is a recipe, which takes the like of these arrays, or None if that is not known.
    """
    inner = inspect.unwrap(function)
    try:
        _, arrays = _signatures[function].kind(tuple(args), kwargs)
    except Exception:  # the function refuses it in its own words
        return inner(*args, **kwargs), None, []
    if LOCAL.recorder is not None:
        return inner(*args, **kwargs), None, []
    return *_recorded(inner, args, kwargs, arrays), arrays


def _recorded(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    arrays: Sequence[Any],
) -> tuple[Any, RecordedCall | None]:
    generation = database.generation()
    with recording(arrays) as recorder:
        result = function(*args, **kwargs)
    return result, _recipe(recorder, arrays, result, generation)


def _is_current(kind: Hashable, recipe: RecordedCall) -> bool:
    """Return whether a call would still come to the same."""
    if recipe.generation != database.generation():
        return False
    for holds in recipe.conditions:
        if not holds():
            return False
    now = time.monotonic()
    if now > recipe.looked + LOOK_INTERVAL:
        if not all(executable.current for executable in recipe.executables):
            return False
        recipe.looked = now
        _keep(kind, recipe)
        for executable in recipe.executables:
            session_of(recipe.queue).touch(executable)
    return True


def _keep(kind: Hashable, recipe: RecordedCall) -> None:
    with _lock:
        _recipes[kind] = recipe
        _recipes.move_to_end(kind)
        if len(_recipes) > MOST_RECIPES:
            _recipes.popitem(last=False)


def _recipe(
    recorder: Recorder, arrays: Sequence[Any], result: Any, generation: int
) -> RecordedCall | None:
    """Return what was recorded, or None if it cannot be replayed."""
    several = isinstance(result, tuple)
    returned = result if several else (result,)
    if recorder.lost or not recorder.steps or recorder.queue is None:
        return None
    if not is_in_order(recorder.queue) or not recorder.steps[-1].executable.plan.launches:
        return None
    if sum(array.nbytes for array in recorder.constants) > MOST_CONSTANT:
        return None
    results = []
    for array in returned:
        if not (isinstance(array, np.ndarray) or is_device_array(array)):
            return None  # a number
        same_side = is_device_array(array) == is_device_array(arrays[0])
        place = recorder.place(array) if same_side else None
        if place is None:
            return None
        if place < len(arrays):
            written = any(place in step.outputs.values() for step in recorder.steps)
            if not written or array is not arrays[place]:
                return None
            results.append(Result(place, tuple(array.shape), array.dtype))
            continue
        fresh = recorder.fresh[place - len(arrays)]
        if array.nbytes != fresh.nbytes:
            return None
        attributes = attributes_of(array) if is_device_array(array) else {}
        shape, dtype = tuple(array.shape), array.dtype
        as_made = (shape, dtype) == (fresh.shape, fresh.dtype)
        results.append(Result(place, shape, dtype, as_made, attributes))
    if len({item.place for item in results}) < len(results):
        return None
    return RecordedCall(recorder, arrays, results, several, generation)
