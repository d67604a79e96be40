"""Recording what a call runs: executables, on the caller's arrays and on new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.runtime.bound import BoundRun, Fresh
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.results import block_of


class Recording:
    """The recording of one call on arrays of the caller, all on the same side.

    Attributes
    ----------
    runs : list of Run
    fresh : list of Fresh
        New arrays, in the order in which they were made.
    constants : list of array
        Arrays made from arguments whose values belong to the key.
    lost : bool
        Whether the call cannot be replayed, such as one that used memory of unknown origin.
    queue : pyopencl.CommandQueue or None
        Where executables ran.
    """

    def __init__(self, arrays: Sequence[Any]):
        self.runs: list[BoundRun] = []
        self.fresh: list[Fresh] = []
        self.constants: list[Any] = []
        self.lost = False
        self.queue: cl.CommandQueue | None = None
        self._count = len(arrays)
        self._alive: list[Any] = []  # referenced, so that no address is reused
        self._places: dict[Any, tuple[int, int, np.dtype[Any]]] = {}
        for place, array in enumerate(arrays):
            # A strided view may have the address of its base, but not all of its elements.
            if not isinstance(array, np.ndarray) or array.flags.forc:
                self._put(array, place)

    def _put(self, array: Any, place: int) -> None:
        self._alive.append(array)
        self._places.setdefault(_memory(array), (place, array.nbytes, array.dtype))

    def place(self, array: Any) -> int | None:
        """Return the place of an array's memory, or None if it is unknown."""
        known = self._places.get(_memory(array))
        if known is None:
            return None
        place, nbytes, dtype = known
        if isinstance(array, np.ndarray) and place < self._count:
            whole = nbytes == array.nbytes and dtype == array.dtype and array.flags.c_contiguous
            return place if whole else None  # a part of the same memory
        return place if nbytes == array.nbytes or not isinstance(array, np.ndarray) else None

    def add_fresh(self, array: Any) -> int:
        """Give a new array a place and return it."""
        place = self._count + len(self.fresh)
        allocator = getattr(array, "allocator", None) if array.size else None
        nbytes = max(array.nbytes, 1)  # OpenCL has no empty buffers
        self.fresh.append(Fresh(tuple(array.shape), array.dtype, nbytes, allocator))
        self._put(array, place)
        return place

    def add_constant(self, array: Any) -> None:
        """Give a place to an array that is the same in every call with this key."""
        if _memory(array) in self._places:  # it is also data of the caller
            self.lost = True
            return
        # The caller may change a host array later.
        self.constants.append(array.copy() if isinstance(array, np.ndarray) else array)
        self._put(array, -len(self.constants))

    def add_run(
        self,
        executable: Executable,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        given: Mapping[str, Any],
        queue: cl.CommandQueue,
    ) -> None:
        """Record a run; the `given` outputs existed before it, the others are new."""
        if not executable.plan.launches:
            for name in outputs.keys() - given.keys():
                self.add_fresh(outputs[name])
            return
        if self.queue is not None and self.queue != queue:
            self.lost = True
        self.queue = queue
        read = {  # nothing is read from an empty array, so any memory serves
            name: self.place(array) if array.size else self.add_fresh(array)
            for name, array in inputs.items()
        }
        written = {
            name: self.place(array) if name in given and array.size else self.add_fresh(array)
            for name, array in outputs.items()
        }
        if None in read.values() or None in written.values():
            self.lost = True
            return
        self.runs.append(BoundRun(executable, read, written))  # type: ignore[arg-type]


def _memory(array: Any) -> Any:
    """Return what identifies an array's memory: a device buffer or a host address."""
    if not array.size:
        return "empty", id(array)
    return int(array.ctypes.data) if isinstance(array, np.ndarray) else block_of(array)
