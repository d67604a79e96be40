"""Calls that are planned once and repeated, like plans of FFTW."""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.queues import finish, profiles
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.fft.functions import cosine, direct, fourier
from opencl_lab.ops.filters.calls import filter
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.select.functions import searchsorted, topk
from opencl_lab.ops.sort.functions import argsort, sort, sort_by_key
from opencl_lab.runtime.arrays import MEMORY, AnyArray, as_array
from opencl_lab.runtime.call import queue_for
from opencl_lab.runtime.call_key import PAIRS, NoKeyError, arrays_key
from opencl_lab.runtime.replay import RecordedCall, data_and_values, is_replayed, record
from opencl_lab.runtime.waiting import WaitFor, call_after

FUNCTIONS = {
    function.__name__: function
    for function in (
        *(item for module in (fourier, cosine, direct) for item in vars(module).values()),
        *(sort, argsort, sort_by_key, topk, searchsorted, gemm, conv2d, filter),
    )
    if inspect.isfunction(function) and is_replayed(function)
}
MOST_LAYOUTS = 16
"""Most combinations of layouts and queues that one prepared call caches."""


@dataclass(frozen=True, slots=True)
class _Last:
    """Device arrays of the previous call: if they are passed again, the key is the same."""

    arrays: tuple[tuple[weakref.ref[Any], Any], ...]
    count: int  # number of arguments among them; the others are options
    recorded: RecordedCall

    @classmethod
    def of(cls, given: Sequence[Any], count: int, recorded: RecordedCall) -> _Last:
        return cls(tuple((weakref.ref(array), array.queue) for array in given), count, recorded)

    def was_of(self, given: Sequence[Any], count: int) -> bool:
        if count != self.count or len(given) != len(self.arrays):
            return False
        for array, (reference, queue) in zip(given, self.arrays, strict=True):
            if reference() is not array or getattr(array, "queue", None) is not queue:
                return False
        return True


class Prepared:
    """A public function with its options, for arrays of one shape and type each.

    The first call plans; further calls only enqueue. They use the same plan and executables even if
    configurations are tuned or memory is freed later. As a context manager it measures the calls
    made inside: ``with f: ...`` waits for the device before and after, and sets `calls` and
    `seconds`.

    Attributes
    ----------
    function : callable
    shapes : tuple of tuple of int
        Shapes of the arrays that a call takes.
    dtypes : tuple of numpy.dtype
    options : dict
    calls : int
        Number of calls inside the last ``with``.
    seconds : float
        Average time of one of these calls, including its execution.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[np.dtype[Any]],
        options: dict[str, Any],
    ):
        self.function = function
        self.shapes = tuple(shapes)
        self.dtypes = tuple(dtypes)
        data, values = data_and_values(function, options)
        # Their values are read once; the caller may change the arrays later.
        self.options = {**options, **{name: deepcopy(options[name]) for name in values}}
        self.calls = 0
        self.seconds = 0.0
        self._begin = 0.0
        self._known: dict[Hashable, RecordedCall] = {}
        self._fixed = data
        self._last: _Last | None = None
        self._queue: cl.CommandQueue | None = options.get("queue")

    def __call__(
        self, *arrays: AnyArray, out: AnyArray | None = None, wait_for: WaitFor = None
    ) -> Any:
        """Call the function.

        Parameters
        ----------
        *arrays : numpy.ndarray or pyopencl.array.Array
            Of the prepared shapes and types, all on the same side.
        out : array, optional
            Receives the result, in place of a new array.
        wait_for : pyopencl.Event or several, optional
            What the first launch waits for; with host arrays, the call itself waits.

        Returns
        -------
        The result of the function.

        Raises
        ------
        InvalidProblem
            If an array has another shape or type than was prepared.
        """
        if wait_for is not None:
            how = {"out": out, "wait_for": wait_for}
            return call_after(self, arrays, how, self.options.get("queue"))
        outs = () if out is None else out if type(out) in PAIRS else (out,)
        given = [*arrays, *self._fixed, *outs]
        self.calls += 1
        last = self._last
        if last is not None and last.was_of(given, len(arrays)):
            return last.recorded.run(given)
        try:
            recorded = self._known.get((bool(profiles), len(arrays), arrays_key(given)))
        except NoKeyError:
            recorded = None
        if recorded is None:
            return self._first(arrays, out, outs)
        if type(given[0]) is not np.ndarray:  # the shape of a NumPy array may change in place
            self._last = _Last.of(given, len(arrays), recorded)
        return recorded.run(given)

    def _first(self, arrays: Sequence[AnyArray], out: Any, outs: Sequence[AnyArray]) -> Any:
        made = [as_array(array) for array in arrays]
        got = [(tuple(array.shape), array.dtype) for array in made]
        wanted = list(zip(self.shapes, self.dtypes, strict=True))
        if got != wanted:
            name = self.function.__name__
            raise InvalidProblem(f"{name} was prepared for {_listed(wanted)}, not {_listed(got)}")
        options = self.options if out is None else {**self.options, "out": out}
        given = [*made, *self._fixed, *outs]
        result, recorded, taken = record(self.function, made, options)
        if recorded is not None and list(map(id, taken)) == list(map(id, given)):
            self._queue = recorded.queue
            if len(self._known) < MOST_LAYOUTS:
                self._known[bool(profiles), len(made), arrays_key(given)] = recorded
        return result

    def __enter__(self) -> Prepared:
        self._wait()
        self.calls = 0
        self._begin = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._wait()
        self.seconds = (time.perf_counter() - self._begin) / max(self.calls, 1)

    def _wait(self) -> None:
        if self._queue is not None:
            finish(self._queue)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"prepare({self.function.__name__!r}, shape={self.shapes}{options})"


def _listed(arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> str:
    return ", ".join(f"{shape} of {dtype}" for shape, dtype in arrays) or "no array"


def prepare(
    operation: str | Callable[..., Any],
    *arrays: AnyArray,
    shape: Any = None,
    dtype: Any = np.float32,
    **options: Any,
) -> Prepared:
    """Plan calls with the same shapes, types and options, and return an object that makes them.

    Parameters
    ----------
    operation : str or callable
        A public function or its name: ``"sort"``, ``"gemm"``, ``"conv2d"``, ``"dft"``, ``"fft"``,
        ``"rfft"``, ...
    *arrays : numpy.ndarray or pyopencl.array.Array
        Examples of the arrays that calls will take. One call is made with them; they do not change.
    shape : tuple of int, or of such tuples, optional
        In place of examples: the shape of the array that a call takes, or one per array.
    dtype : dtype or sequence of dtypes
        With `shape`; a single one applies to all arrays.
    **options
        Options of the function: ``axis``, ``alpha``, ``mode``, ... All calls use the arrays among
        them, such as `c` of `gemm`. The values of host `weights` of `conv2d` are copied; later
        changes of that array have no effect. With `shape`, calls are planned for arrays on the
        device of ``queue=`` or ``device=``, else on the host. Others work too, after one slow call.

    Returns
    -------
    Prepared
        Call it with arrays, and optionally with ``out=`` and ``wait_for=``.

    Raises
    ------
    InvalidProblem
        If there is no such function, or it refuses the arrays or options.

    Examples
    --------
    >>> import numpy as np, opencl_lab as ol
    >>> f = ol.prepare("fft", shape=(16, 1024), dtype="complex64")
    >>> x = np.ones((16, 1024), np.complex64)
    >>> y = f(x)
    >>> f(2 * x, out=y) is y
    True
    """
    function = FUNCTIONS.get(getattr(operation, "__name__", str(operation)))
    if function is None or (callable(operation) and operation is not function):
        name = repr(operation)
        raise InvalidProblem(f"cannot prepare {name}; possible are: {', '.join(FUNCTIONS)}")
    name = function.__name__
    if (shape is None) == (not arrays):
        raise InvalidProblem("prepare takes either arrays or shape=")
    if not arrays:
        arrays = _examples(shape, dtype, options.get("queue"), options.get("device"))
    for array in arrays:
        if isinstance(array, MEMORY):
            as_array(array)  # says what to pass instead
        if not isinstance(array, (np.ndarray, cl.array.Array)):
            raise InvalidProblem(f"prepare takes arrays or shape=, not {type(array).__name__}")
    for item in options.keys() & {"out", "wait_for"}:
        raise InvalidProblem(f"{item} is given to the calls of what is prepared, not to prepare")
    try:
        bound = inspect.signature(function).bind(*arrays, **options)
    except TypeError as error:
        raise InvalidProblem(f"cannot prepare {name} so: {error}") from error
    given = dict(zip(bound.arguments, arrays, strict=False))
    _, values = data_and_values(function, given)
    if values:
        raise InvalidProblem(f"{values[0]} are an option of what is prepared: {values[0]}=...")
    shapes = [tuple(array.shape) for array in arrays]
    prepared = Prepared(function, shapes, [array.dtype for array in arrays], options)
    prepared(*arrays)
    prepared.calls = 0
    return prepared


def _examples(shape: Any, dtype: Any, queue: Any, device: DeviceSpec) -> tuple[AnyArray, ...]:
    """Return arrays of zeros; on the device of the queue, if there is one."""
    queue = queue_for(None, queue, device)
    several = isinstance(shape, (tuple, list)) and any(map(np.ndim, shape))
    shapes = list(shape) if several else [shape]
    types = list(dtype) if isinstance(dtype, (tuple, list)) else [dtype] * len(shapes)
    if len(types) != len(shapes):
        raise InvalidProblem(f"shape= names {len(shapes)} arrays and dtype= {len(types)} types")
    try:
        made = [np.zeros(item, kind) for item, kind in zip(shapes, types, strict=True)]
    except (MemoryError, TypeError, ValueError) as error:
        raise InvalidProblem(f"no array of shape {shape!r}: {error}") from error
    if queue is None:
        return tuple(made)
    return tuple(cl.array.to_device(queue, array) for array in made)
