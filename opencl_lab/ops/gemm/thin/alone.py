"""The built-in configuration of `gemv` for CPUs, whose items work on their own.

Numbers of items, and of bytes that are worth one, were measured on Intel Xeons with AVX-512, of 2
and of 16 cores; those of long rows on 2.
"""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import largest_power
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.space import Config
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.thin.lines import (
    few_of,
    is_along,
    is_other_along,
    joins,
    lines_of,
    worth_splits,
)

SUMS = 16 << 10
"""Bytes of sums, or of x, that leave room in a CPU's first cache."""
SLICE_BYTES = 2 << 20
"""Bytes of both factors that make an item more worth a second launch."""
ROW_SUMS = 32 << 10
"""Bytes of sums of an item of a CPU that has long rows of a matrix across k."""
SLICE_K, LONG_SLICE_K = 256, 1024
"""Least values of k of a slice of such rows: where each thread has one, and where it has more."""
LONG_UNITS = 4
"""Threads that gain by long rows: with 16 of them, a vector times 8192 x 8192 takes 1.1 to 1.4
times as long."""
LINES = 1 << 18
"""Bytes of the matrix lines of an item, where these lie along k and so do the few vectors."""
SMALL = 1 << 19
"""Bytes of a matrix for each thread of a CPU, up to which one item has all of them."""


def built_in(problem: GemmProblem, device: Device) -> Config:
    """Return the built-in configuration of items on their own."""
    real, sum_rows = problem.real_type.itemsize, few_of(problem) * problem.components
    room = largest_power(SUMS // (sum_rows * real))
    form = _along if is_along(problem) else _across
    rows, block, shares = form(problem, device, room)
    items = ceil_divide(lines_of(problem), block) * max(1, problem.batch)
    few = worth_splits(problem, items, 4 * device.compute_units, SLICE_BYTES)
    return Config(
        LANES=1,
        PIECES=1,
        VECTOR=largest_power(16, device.native_vector_bytes // real),
        ROWS=rows,
        UNROLL=1,
        BLOCK=block,
        STEP_K=min(2048, room),
        SPLITS=ceil_divide(shares, items) if shares else few,
    )


def _along(problem: GemmProblem, device: Device, room: int) -> tuple[int, int, int]:
    """Return rows, lines of an item and 0, where lines lie along k."""
    registers = 24 if device.native_vector_bytes >= 64 else 12
    lines, units = lines_of(problem), device.compute_units
    # A thread more that is woken, or a group more, costs more than a small share of work.
    matrix = lines * problem.k * problem.dtype.itemsize
    shares = 4 * units if matrix > SMALL * units else units
    most, rows = 256, 8
    if is_other_along(problem) and problem.dtype.kind == "f" and problem.dtype.itemsize > 2:
        # The vectors are read in place, so that no item copies them. Threads whose items are small
        # read memory near to each other: 3,001 lines of 4,097 numbers take 0.9 of the time.
        line = max(1, problem.k) * problem.dtype.itemsize
        most, rows = min(256, largest_power(max(16, LINES // line))), 4
    block = min(max(16, largest_power(2 * ceil_divide(lines, shares) - 1)), most, room)
    return largest_power(rows, registers // (few_of(problem) * problem.components)), block, 0


def _across(problem: GemmProblem, device: Device, room: int) -> tuple[int, int, int]:
    """Return rows, lines of an item and how many items to have, 0 for few, for lines across k."""
    sum_rows, real = few_of(problem) * problem.components, problem.real_type.itemsize
    lines, units = lines_of(problem), device.compute_units
    rows = 4 if sum_rows <= 16 else 2
    if not _has_long_rows(problem, device):
        registers = 24 if device.native_vector_bytes >= 64 else 12
        rows = max(
            rows, largest_power(8, registers // sum_rows)
        )  # their sums lie in the first cache
        return rows, min(max(64, largest_power(2 * ceil_divide(lines, units) - 1)), 2048, room), 0
    most = largest_power(ROW_SUMS // (sum_rows * real))
    if lines > most:
        return rows, most, 4 * units
    shares = min(4 * units, max(units, problem.depth // LONG_SLICE_K))
    return rows, max(64, largest_power(2 * lines - 1)), shares


def _has_long_rows(problem: GemmProblem, device: Device) -> bool:
    """Return whether items of a CPU have long rows of a matrix across k, each a slice of k.

    A processor follows one long stream of memory better than short pieces of many rows: of 8192 x
    8192 numbers, whole rows take two threads 0.83 of the time. Sums of one or two vectors may fill
    most of the first cache; of more, only whole rows of few sums are better. To add up a row of
    sums more for each thread has to be worth it.
    """
    sum_rows, units = few_of(problem) * problem.components, device.compute_units
    row = lines_of(problem) * sum_rows * problem.real_type.itemsize
    matrix = lines_of(problem) * problem.k * problem.dtype.itemsize
    return (
        joins(device)
        and units <= LONG_UNITS
        and (sum_rows <= 2 or row <= SUMS)
        and matrix > SMALL * units
        and problem.k >= SLICE_K * units
    )
