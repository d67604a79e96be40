"""The built-in configuration of `gemv` for CPUs, whose items work alone.

Numbers of items, and of bytes that are worth an item, were measured on Intel Xeons with AVX-512, of
2 and of 16 cores; those of long rows on 2.
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
"""Bytes of sums, or of x, that leave room in a CPU's L1 cache."""
SLICE_BYTES = 2 << 20
"""Bytes of both factors per item that are worth a second launch to have more items."""
ROW_SUMS = 32 << 10
"""Bytes of sums of an item that has long rows of a matrix across k."""
SLICE_K, LONG_SLICE_K = 256, 1024
"""Least values of k in a slice of such rows: with one slice per thread, and with several."""
LONG_UNITS = 4
"""Most threads that gain by long rows: with 16 of them, a vector times 8192 x 8192 takes 1.1 to
1.4 times as long."""
LINES = 1 << 18
"""Bytes of an item's lines of the matrix, where these and the few vectors lie along k."""
SMALL = 1 << 19
"""Bytes of a matrix per thread up to which one item does all of it."""


def built_in(problem: GemmProblem, device: Device) -> Config:
    """Return the built-in configuration of items that work alone."""
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
    """Return rows, lines of an item, and 0, for lines along k."""
    registers = 24 if device.native_vector_bytes >= 64 else 12
    lines, units = lines_of(problem), device.compute_units
    # To wake another thread, or start another group, costs more than a small share of work.
    matrix = lines * problem.k * problem.dtype.itemsize
    shares = 4 * units if matrix > SMALL * units else units
    most, rows = 256, 8
    if is_other_along(problem) and problem.dtype.kind == "f" and problem.dtype.itemsize > 2:
        # The vectors are read in place, so that no item copies them. Threads with small items read
        # memory close together: 3,001 lines of 4,097 numbers take 0.9 of the time.
        line = max(1, problem.k) * problem.dtype.itemsize
        most, rows = min(256, largest_power(max(16, LINES // line))), 4
    block = min(max(16, largest_power(2 * ceil_divide(lines, shares) - 1)), most, room)
    return largest_power(rows, registers // (few_of(problem) * problem.components)), block, 0


def _across(problem: GemmProblem, device: Device, room: int) -> tuple[int, int, int]:
    """Return rows, lines of an item, and the number of items (0: few), for lines across k."""
    sum_rows, real = few_of(problem) * problem.components, problem.real_type.itemsize
    lines, units = lines_of(problem), device.compute_units
    rows = 4 if sum_rows <= 16 else 2
    if not _has_long_rows(problem, device):
        registers = 24 if device.native_vector_bytes >= 64 else 12
        rows = max(rows, largest_power(8, registers // sum_rows))  # their sums fit the L1 cache
        return rows, min(max(64, largest_power(2 * ceil_divide(lines, units) - 1)), 2048, room), 0
    most = largest_power(ROW_SUMS // (sum_rows * real))
    if lines > most:
        return rows, most, 4 * units
    shares = min(4 * units, max(units, problem.depth // LONG_SLICE_K))
    return rows, max(64, largest_power(2 * lines - 1)), shares


def _has_long_rows(problem: GemmProblem, device: Device) -> bool:
    """Return whether items have long rows of a matrix across k, each a slice of k.

    A processor prefetches one long stream of memory better than short pieces of many rows: for
    8192 x 8192 numbers, whole rows take two threads 0.83 of the time. The sums of one or two
    vectors may fill most of the L1 cache; with more vectors, only whole rows with few sums are
    better. The gain must be worth another row of sums to add up per thread.
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
