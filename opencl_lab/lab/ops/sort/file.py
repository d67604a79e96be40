"""Sorting a `.npy` file that is too large for memory into another one, part by part."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.memory import host_memory
from opencl_lab.core.paths import check_target, write_target
from opencl_lab.core.wording import size_text
from opencl_lab.lab.files import NpyFile, scratch_file
from opencl_lab.lab.operation import axis_of
from opencl_lab.lab.ops.sort.check import find_fault
from opencl_lab.ops.sort.out_of_core import sort_parts
from opencl_lab.ops.sort.part_sizes import Parts, needs_parts, parts_of
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.runtime.streams import LIMIT, memory_limit

COPIES = 4
"""Arrays of the file's size that a comparison of whole arrays holds on the host."""
HEADER = 1 << 12


class _Wrong(Exception):
    """The result is wrong, and is deleted."""


@dataclass(frozen=True)
class FileResult:
    """The result of sorting a file in parts."""

    seconds: float
    """Duration, with reading and writing but without building kernels."""
    check_seconds: float
    """Duration of the check that followed."""
    stages: Mapping[str, float]
    """Seconds of the stages ``read``, ``work`` and ``write``, which overlap, of ``kernels`` by
    events, and of ``build``, which comes before them."""
    fault: str | None
    """What is wrong with the result, which is deleted then."""


@dataclass(frozen=True)
class FileSort:
    """A file that is sorted part by part."""

    path: Path
    device: Device
    split: Parts

    @property
    def problem(self) -> SortProblem:
        """The problem that is solved."""
        return self.split.whole

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.problem.n * self.problem.rows * self.problem.dtype.itemsize

    @property
    def reason(self) -> str:
        """Why the file cannot be sorted in any other way."""
        return f"{self.path} holds {size_text(self.nbytes)}, which are sorted in parts"

    def check(self, output: Path) -> None:
        """Check early that `output` can be replaced, and that there is room for it and the runs."""
        if output.suffix.lower() != ".npy":
            raise InvalidProblem(f"cannot write {output}: {self.reason} into a .npy file")
        aside = self.problem.n * self.problem.dtype.itemsize if self.split.merges else 0
        check_target(output, self.nbytes + aside + HEADER, whole=True)

    def run(self, output: Path, report: Callable[[int, int, str], None]) -> FileResult:
        """Sort the file into another one, or into itself, and check the result.

        `output` is replaced atomically at the end, if the result is correct. `report` is called
        with the units of work done, their total, and a label of the next one. `InvalidProblem` is
        raised if a file cannot be read or written, or was changed meanwhile.
        """
        parts, problem = self.split, self.problem
        steps = parts.steps + parts.runs
        keys = max(problem.n * problem.rows, 1)
        looked = 0

        def sorting(done: int) -> None:
            merging = parts.merges and done % (2 * parts.runs) >= parts.runs
            label = "merging" if merging else "sorting"
            report(done, steps, "checking" if done == parts.steps else label)

        def checking(count: int) -> None:
            nonlocal looked
            looked += count
            report(parts.steps + parts.runs * looked // keys, steps, "checking")

        begin = time.perf_counter()
        with (
            suppress(_Wrong),
            NpyFile.opened(self.path) as given,
            write_target(output) as temporary,
            NpyFile.created(temporary, given) as result,
        ):
            aside = partial(scratch_file, output.resolve().parent, given)
            stages = sort_parts(parts, given, result, aside, device=self.device, report=sorting)
            end = time.perf_counter()
            fault = find_fault(problem, given, result, checking)
            checked = time.perf_counter()
            if fault is not None:
                given.check_unchanged()
                raise _Wrong
        return FileResult(end - begin - stages["build"], checked - end, stages, fault)


def sort_file(
    path: Path,
    options: Mapping[str, Any],
    device: Device,
    *,
    algorithm: str = "auto",
    limit: float | None = None,
) -> FileSort | None:
    """Return the job that sorts a file in parts, or None if it is sorted as a whole.

    It is sorted in parts if sorting takes more than `limit` bytes of the device's memory, by
    default `OCLAB_DEVICE_BYTES` or all of it. Without a limit it is also sorted in parts if the
    host's memory is too small for the arrays of a comparison. `InvalidProblem` is raised if it must
    be sorted in parts but cannot be. `options` are the given options of the operation.
    """
    if path.suffix.lower() != ".npy" or not path.is_file():
        return None
    with NpyFile.opened(path) as file:
        shape, dtype, nbytes, fortran = file.shape, file.dtype, file.nbytes, file.fortran
    if not shape or "n" in options or dtype.name not in KEY_TYPES:
        return None  # which is refused, or converted
    axis = axis_of(options, len(shape))
    n = shape[axis]
    rows = math.prod(shape[:axis]) * math.prod(shape[axis + 1 :])
    problem = SortProblem(n, dtype, rows, bool(options.get("descending")))
    free = limit is None and not os.environ.get(LIMIT)
    limit = memory_limit(device) if limit is None else limit
    crowded = free and COPIES * nbytes > host_memory()
    if not (crowded or needs_parts(problem, device, algorithm, limit=limit)):
        return None
    too_large = f"{path} holds {size_text(nbytes)}, too much to be sorted at once"
    if options.get("dtype", dtype.name) != dtype.name:
        raise InvalidProblem(f"{too_large}: in parts its keys stay {dtype}; leave --dtype out")
    if axis != (0 if fortran else len(shape) - 1):
        raise InvalidProblem(
            f"{too_large}, and keys along axis {axis} do not follow each other in it; save it with "
            "this axis as the last one"
        )
    return FileSort(path, device, parts_of(problem, device, algorithm, limit=limit))
