"""How keys that do not fit into a device's memory are divided: which parts, and how large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import ceil_divide, check_plan
from opencl_lab.core.space import Config
from opencl_lab.core.wording import counted, size_text
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.runtime.streams import largest_fitting, limit_of_parts, memory_limit
from opencl_lab.runtime.tiles import PART_SLOTS

FEW = 8
"""Fewest parts, so that copies and kernels overlap, unless parts would be shorter than `SHORT`."""
SHORT = 64 << 20
"""Bytes of a part from which a device runs at its full rate."""
LEAST = 1024
"""Fewest keys of a part."""
MOST_PARTS = 4096
"""Most runs of a row; also most batches, if they have fewer than `LEAST` keys."""
ROOM, ROOM_ASIDE = 8, 16 << 20
"""A plan takes less than `ROOM` bytes per byte of keys, and `ROOM_ASIDE` bytes besides."""


@dataclass(frozen=True)
class Parts:
    """How a problem is divided into parts."""

    whole: SortProblem
    part: SortProblem  # what the device sorts at a time: whole rows, or a piece of one
    algorithm: Algorithm[SortProblem]
    config: Config

    @property
    def merges(self) -> bool:
        """Whether rows are longer than a part."""
        return self.whole.n > self.part.n

    @property
    def runs(self) -> int:
        """Number of sorted runs of a row, or of batches of rows."""
        if self.merges:
            return ceil_divide(self.whole.n, self.part.n)
        return ceil_divide(self.whole.rows, self.part.rows)

    @property
    def steps(self) -> int:
        """How often a part goes through the device: twice where runs are merged."""
        return 2 * self.runs * self.whole.rows if self.merges else self.runs

    @property
    def nbytes(self) -> int:
        """Bytes of a part."""
        return self.part.n * self.part.rows * self.part.dtype.itemsize

    def __str__(self) -> str:
        one, many = ("run", "runs") if self.merges else ("batch", "batches")
        return f"{counted(self.runs, one, many)} of {size_text(self.nbytes)}"


def _configured(
    problem: SortProblem, device: Device, algorithm: str, config: Mapping[str, Any] | None
) -> tuple[Algorithm[SortProblem], Config]:
    chosen = SORT_SOLVER.choose(problem, device, algorithm)
    return chosen, chosen.configure(problem, device, config)


def needs_parts(
    problem: SortProblem,
    device: Device,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    *,
    limit: float | None = None,
) -> bool:
    """Return whether a problem takes more memory than a device has, or than `limit`."""
    limit = memory_limit(device) if limit is None else limit
    nbytes = problem.n * problem.rows * problem.dtype.itemsize
    if ROOM * nbytes + ROOM_ASIDE <= min(limit, device.largest_buffer):
        return False  # small enough, so nothing is planned
    chosen, configured = _configured(problem, device, algorithm, config)
    return not _fits(chosen, configured, problem, device, limit, slots=1)


def _fits(
    algorithm: Algorithm[SortProblem],
    config: Config,
    problem: SortProblem,
    device: Device,
    limit: float,
    slots: int,
) -> bool:
    """Return whether a problem fits, with `slots` arrays each for its keys and the results."""
    plan = algorithm.plan(problem, config, device)
    try:
        check_plan(plan, device)
    except InvalidProblem:
        return False
    given = sum(buffer.nbytes for buffer in (*plan.with_role("in"), *plan.with_role("out")))
    return plan.nbytes + (slots - 1) * given <= limit


def parts_of(
    problem: SortProblem,
    device: Device,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    *,
    limit: float | None = None,
) -> Parts:
    """Return how a problem is divided so that each part takes no more memory than `limit`.

    Raise `InvalidProblem` if the parts would be too small or too many.
    """
    limit = memory_limit(device) if limit is None else limit
    limit = limit_of_parts(device, limit)

    def fits(part: SortProblem) -> bool:
        return _fits(*_configured(part, device, algorithm, config), part, device, limit, PART_SLOTS)

    item = problem.dtype.itemsize
    row = replace(problem, rows=1)
    rows = 0
    if problem.n * item <= limit:
        rows = largest_fitting(lambda count: fits(replace(problem, rows=count)), problem.rows)
    if rows:
        rows = min(rows, max(ceil_divide(problem.rows, FEW), SHORT // max(problem.n * item, 1), 1))
        size, count = rows * problem.n, ceil_divide(problem.rows, rows)
        part, too_few = replace(problem, rows=rows), size < LEAST and count > MOST_PARTS
    else:
        most = min(problem.n, int(limit) // item)
        size = largest_fitting(lambda n: fits(replace(row, n=n)), most)
        size = min(size, max(ceil_divide(problem.n, FEW), SHORT // item))
        count = ceil_divide(problem.n, max(size, 1))
        part = replace(row, n=ceil_divide(problem.n, count))
        too_few = size < min(LEAST, problem.n) or count > MOST_PARTS
    if too_few:
        why = f"there would be {count:,} parts of {size:,} keys" if size else "not one would fit"
        raise InvalidProblem(
            f"{size_text(limit)} of device memory are too few to sort {problem.title}: {why}; "
            "allow more"
        )
    return Parts(problem, part, *_configured(part, device, algorithm, config))
