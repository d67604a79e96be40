"""Sorting host keys on several devices with memory of their own, which keep what they have sorted.

```text
 device 0   | its part, sorted |   cut   | 0 -> 0 | 0 -> 1 |    | 0 -> 0 | 1 -> 0 |   sorted again
 device 1   | its part, sorted |         | 1 -> 0 | 1 -> 1 |    | 0 -> 1 | 1 -> 1 |
```

The cuts are exact (`multiway_split`). Only keys of which another device makes the sorted part go by
way of the host. So with two devices, three quarters of the keys' bytes go each way, by two links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array

from opencl_lab.core.device import Device
from opencl_lab.ops.sort.multiway_split import Samples
from opencl_lab.ops.sort.part_sizes import needs_parts
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.exchange import to_device, to_host
from opencl_lab.runtime.freeing import new_array
from opencl_lab.runtime.together import Stop, divided, on_each

Array: TypeAlias = np.ndarray[Any, Any]

ROOM = 2
"""How much larger than its part a sort must be that would still fit on a device."""


def can_stay(problem: SortProblem, devices: Sequence[Device]) -> bool:
    """Return whether each device has memory of its own, and enough for its part."""
    if problem.bits or any(device.unified_memory for device in devices):
        return False
    in_rows = problem.rows >= len(devices)
    if not in_rows and problem.n < len(devices):
        return False
    bounds = divided(problem.rows if in_rows else problem.n, devices)
    for device, (begin, end) in zip(devices, pairwise(bounds), strict=True):
        size = ROOM * (end - begin)
        part: dict[str, Any] = {"rows": size} if in_rows else {"rows": 1, "n": size}
        if needs_parts(replace(problem, **part), device):
            return False
    return True


def sort_resident(
    problem: SortProblem,
    keys: Array,
    result: Array,
    devices: Sequence[Device],
    algorithm: str,
    config: Mapping[str, Any] | None,
) -> None:
    """Sort rows of host keys into `result`; both are dense, of shape (rows, n).

    If there are as many rows as devices, these are divided; else each row is.
    """
    how: dict[str, Any] = {"algorithm": algorithm, "config": config}
    if problem.rows < len(devices):
        for row, target in zip(keys, result, strict=True):
            _Row(replace(problem, rows=1), row, target, devices, how).sort()
        return
    bounds = divided(problem.rows, devices)

    def sort_rows(index: int, stop: Stop) -> None:
        rows = slice(*bounds[index : index + 2])
        if rows.start < rows.stop:
            stop.check()
            part = replace(problem, rows=rows.stop - rows.start)
            out, queue = {"sorted": result[rows]}, devices[index].queue()
            SORT_SOLVER.run(part, {"keys": keys[rows]}, queue=queue, out=out, **how)

    on_each(devices, sort_rows)


class _Row:
    """One row, of which each device sorts a part, and then makes a part of the result."""

    def __init__(
        self,
        problem: SortProblem,
        row: Array,
        result: Array,
        devices: Sequence[Device],
        how: Mapping[str, Any],
    ):
        self._problem, self._row, self._result = problem, row, result
        self._devices, self._how = devices, how
        self._bounds = divided(problem.n, devices)
        lengths = [end - begin for begin, end in pairwise(self._bounds)]
        self._samples = Samples(lengths, problem.dtype, problem.descending)
        self._runs: list[Any] = [None] * len(devices)
        self._cuts = np.zeros((len(devices) + 1, len(devices)), np.int64)
        self._cuts[-1] = lengths

    def sort(self) -> None:
        """Sort the row."""
        on_each(self._devices, self._sort_part)
        self._samples.order()
        for at, rank in enumerate(self._bounds[1:-1], 1):
            self._cuts[at] = self._samples.cut(rank, lambda run, *at: self._piece(run, *at))
        # The result holds the pieces for other devices until these fetch them.
        on_each(self._devices, self._send)
        on_each(self._devices, self._merge)

    def _piece(self, run: int, begin: int, end: int) -> Array:
        return to_host(self._runs[run][begin:end])

    def _sorted(self, keys: Any) -> Any:
        part = replace(self._problem, n=keys.size)
        made = SORT_SOLVER.run(part, {"keys": keys}, queue=keys.queue, **self._how).outputs
        return made["sorted"].reshape(-1)

    def _sort_part(self, index: int, stop: Stop) -> None:
        queue = self._devices[index].queue()
        keys = to_device(self._row[slice(*self._bounds[index : index + 2])], queue=queue)
        stop.check()
        self._runs[index] = self._sorted(keys) if keys.size else keys
        self._samples.put(index, to_host(self._runs[index][:: self._samples.step]))

    def _places(self, target: int) -> list[Array]:
        """Return where the pieces of each run lie in the part that a device makes."""
        lengths = self._cuts[target + 1] - self._cuts[target]
        begin, end = self._bounds[target : target + 2]
        return np.split(self._result[begin:end], np.cumsum(lengths)[:-1])

    def _send(self, index: int, stop: Stop) -> None:
        for target in range(len(self._devices)):
            stop.check()
            if target != index:
                begin, end = self._cuts[target : target + 2, index]
                to_host(self._runs[index][begin:end], self._places(target)[index])

    def _merge(self, index: int, stop: Stop) -> None:
        queue, place = self._devices[index].queue(), 0
        begin, end = self._cuts[index : index + 2, index]
        pieces = self._places(index)
        shape = (sum(map(len, pieces)),)
        keys: Any = new_array(queue, shape, self._problem.dtype, allocator=None)
        for run, piece in enumerate(pieces):
            stop.check()
            part = self._runs[index][begin:end] if run == index else to_device(piece, queue=queue)
            if piece.size:
                how = {"src_offset": part.offset, "dst_offset": place, "byte_count": piece.nbytes}
                source: Any = part.base_data
                cl.enqueue_copy(queue, keys.base_data, source, **how)
            place += piece.nbytes
        self._runs[index] = None
        made = self._sorted(keys) if keys.size else keys
        to_host(made, self._result[slice(*self._bounds[index : index + 2])])
