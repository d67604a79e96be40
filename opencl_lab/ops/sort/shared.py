"""Sorting host keys on several devices.

Rows are divided if there are as many as devices. Else each row is:

```text
 device 0   | its part, sorted |   cut   | 0 -> 0 | 0 -> 1 |    | 0 -> 0 | 1 -> 0 |   merged
 device 1   | its part, sorted |         | 1 -> 0 | 1 -> 1 |    | 0 -> 1 | 1 -> 1 |
```

The cuts are exact (`multiway_split`). What a device has sorted stays there; only keys of which
another one makes the result go by way of the host. So with two devices, three quarters of the keys'
bytes go each way, by two links. Many runs are sorted again, which merges, as sorts are stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.ops.sort.merge_runs import merge_runs, merges
from opencl_lab.ops.sort.multiway_split import Samples
from opencl_lab.ops.sort.part_sizes import needs_parts
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.exchange import to_device, to_host
from opencl_lab.runtime.results import block_of
from opencl_lab.runtime.session import new_array
from opencl_lab.runtime.staging import Stop
from opencl_lab.runtime.together import divided, new_result, on_each

Array: TypeAlias = np.ndarray[Any, Any]

LEAST, LEAST_SENT = 4 << 20, 8 << 30
"""Bytes of keys from which several devices take less time than one: on host memory, and where keys
are sent to a device. Two H100 took 1.2 times as long as one for 1.6 GB, and more for fewer keys."""
ROOM = 2
"""How much larger than its part a sort must be that would still fit on a device."""


def sort_together(
    problem: SortProblem,
    keys: Array,
    out: Array | None,
    devices: Sequence[Device],
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
) -> Array | None:
    """Sort rows of host keys on several devices, into `out` if given.

    The arrays are dense, of shape (rows, n), and share no memory. Return None where one device
    sorts them: if they are few, if a part does not fit on its device, or a row by some bits, which
    cannot be merged.

    Raises
    ------
    InvalidConfig
        If one of the devices cannot sort such keys.
    OclabError
        An error of a device, which it names.
    """
    for device in devices:  # before any of them starts
        SORT_SOLVER.choose(problem, device, algorithm).configure(problem, device, config)
    least = LEAST if all(device.unified_memory for device in devices) else LEAST_SENT
    if keys.nbytes < least or not _fits(problem, devices):
        return None
    result: Array = new_result(devices, keys.shape, keys.dtype) if out is None else out
    how: dict[str, Any] = {"algorithm": algorithm, "config": config}
    if problem.rows < len(devices):
        for row, target in zip(keys, result, strict=True):
            _SharedRow(replace(problem, rows=1), row, target, devices, how).sort()
        return result
    bounds = divided(problem.rows, devices)

    def sort_rows(index: int, stop: Stop) -> None:
        rows = slice(*bounds[index : index + 2])
        if rows.start < rows.stop:
            stop.check()
            part = replace(problem, rows=rows.stop - rows.start)
            place, queue = {"sorted": result[rows]}, devices[index].queue()
            SORT_SOLVER.run(part, {"keys": keys[rows]}, queue=queue, out=place, **how)

    on_each(devices, sort_rows)
    return result


def _fits(problem: SortProblem, devices: Sequence[Device]) -> bool:
    """Return whether rows, or parts of a row, can be sorted by the devices, each on its own."""
    in_rows = problem.rows >= len(devices)
    if not in_rows and (problem.bits or problem.n < len(devices)):
        return False
    bounds = divided(problem.rows if in_rows else problem.n, devices)
    for device, (begin, end) in zip(devices, pairwise(bounds), strict=True):
        size = ROOM * (end - begin)
        part: dict[str, Any] = {"rows": size} if in_rows else {"rows": 1, "n": size}
        if needs_parts(replace(problem, **part), device):
            return False
    return True


class _SharedRow:
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
                cl.enqueue_copy(queue, block_of(keys), source, **how)
            place += piece.nbytes
        self._runs[index] = None
        lengths = [len(piece) for piece in pieces]
        if sum(map(bool, lengths)) < 2:
            made = keys
        elif merges(self._devices[index], lengths, keys):
            (made,) = merge_runs([keys], lengths, descending=self._problem.descending)
        else:
            made = self._sorted(keys)
        to_host(made, self._result[slice(*self._bounds[index : index + 2])])
