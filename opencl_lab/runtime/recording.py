"""What a call does with memory, seen while it runs: executables, the caller's arrays, new ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.runtime.bound import Fresh, Run
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.results import block_of


class _Local(threading.local):
    """What a thread is recording."""

    recorder: Recorder | None = None


LOCAL = _Local()


class Recorder:
    """Records one call on arrays of the caller's, all on one side and none of them empty.

    New arrays are `fresh`, in the order in which they were made; `constants` are what the call has
    made of arguments whose values its kind includes; `conditions` must hold for it to be of use; it
    is `lost` once memory was read of which nobody knows where it came from. Executables ran on
    `queue`.
    """

    def __init__(self, arrays: Sequence[Any]):
        self.steps: list[Run] = []
        self.fresh: list[Fresh] = []
        self.constants: list[Any] = []
        self.conditions: list[Callable[[], bool]] = []
        self.lost = False
        self.queue: cl.CommandQueue | None = None
        self._count = len(arrays)
        self._kept: list[Any] = []  # alive, so that no address comes twice
        self._places: dict[int, tuple[int, int, np.dtype[Any]]] = {}
        for place, array in enumerate(arrays):
            self._kept.append(array)
            # A view of another order has the address of the whole and none of its order.
            if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
                self._places.setdefault(_address(array), (place, array.nbytes, array.dtype))

    def place(self, array: Any) -> int | None:
        """Return the place of the memory of an array, if it is known."""
        known = self._places.get(_address(array))
        if known is None:
            return None
        place, nbytes, dtype = known
        if isinstance(array, np.ndarray) and place < self._count:
            whole = nbytes == array.nbytes and dtype == array.dtype and array.flags.c_contiguous
            return place if whole else None  # else another view of the same memory
        return place if nbytes == array.nbytes or not isinstance(array, np.ndarray) else None

    def add(self, array: Any) -> int:
        """Give a new array a place and return it."""
        place = self._count + len(self.fresh)
        allocator = getattr(array, "allocator", None)
        self.fresh.append(Fresh(tuple(array.shape), array.dtype, array.nbytes, allocator))
        self._places[_address(array)] = (place, array.nbytes, array.dtype)
        self._kept.append(array)
        return place

    def constant(self, array: Any) -> None:
        """Give an array that holds the same in every call of the kind a place."""
        if _address(array) in self._places:  # it is the caller's data, too
            self.lost = True
            return
        self._kept.append(array)
        # The caller may change an array of the host.
        self.constants.append(array.copy() if isinstance(array, np.ndarray) else array)
        self._places[_address(array)] = (-len(self.constants), array.nbytes, array.dtype)

    def step(
        self,
        executable: Executable,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        given: frozenset[str],
        queue: cl.CommandQueue,
    ) -> None:
        """Note what ran; `given` are the outputs that were there before."""
        if self.queue is not None and self.queue != queue:
            self.lost = True
        self.queue = queue
        arrays = (*inputs.values(), *outputs.values())
        if not all(array.size for array in arrays):
            self.lost = True
            return
        read = {name: self.place(array) for name, array in inputs.items()}
        written = {
            name: self.place(array) if name in given else self.add(array)
            for name, array in outputs.items()
        }
        if None in read.values() or None in written.values():
            self.lost = True
            return
        self.steps.append(Run(executable, read, written))  # type: ignore[arg-type]


def _address(array: Any) -> int:
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    data = block_of(array)
    return int(data.int_ptr) if data is not None else 0  # what has none is no kind of call


@contextmanager
def recording(arrays: Sequence[Any]) -> Iterator[Recorder]:
    """Record what this thread does; not inside of another recording."""
    LOCAL.recorder = Recorder(arrays)
    try:
        yield LOCAL.recorder
    finally:
        LOCAL.recorder = None


@contextmanager
def unrecorded() -> Iterator[None]:
    """Record nothing of what this thread does meanwhile: it is not part of the call."""
    recorder, LOCAL.recorder = LOCAL.recorder, None
    try:
        yield
    finally:
        LOCAL.recorder = recorder


def note_fresh(array: pyopencl.array.Array) -> pyopencl.array.Array:
    """Tell the recording, if there is one, of new memory on the device, and return it."""
    recorder = LOCAL.recorder
    if recorder is not None and array.size:
        recorder.add(array)
    return array


def note_constants(arrays: Iterable[Any]) -> None:
    """Tell the recording, if there is one, of arrays that further calls of the kind share."""
    recorder = LOCAL.recorder
    if recorder is not None:
        for array in arrays:
            recorder.constant(array)


def note_condition(holds: Callable[[], bool]) -> None:
    """Tell the recording, if there is one, what must hold for it to be of use."""
    recorder = LOCAL.recorder
    if recorder is not None:
        recorder.conditions.append(holds)
