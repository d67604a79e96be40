"""How arrays over many ranks are transformed, along axes that are cut or whole.

All axes that are whole on each rank are transformed there by `opencl_lab.fft`. Then the array is
redistributed, so that others become whole. One row that is cut has no other axis to be cut along;
its transform is arranged as a matrix (D. H. Bailey, 1990; C. Van Loan, "Computational Frameworks
for the Fast Fourier Transform", 1992). With n = n1·n2, sample j = j1·n2 + j2 and frequency
k = k1 + n1·k2:

```text
x[j1][j2]   n1 rows of n2 columns, each rank has some rows
  1. exchange: each rank has whole columns
  2. transform them, length n1               -> y[k1][j2]
  3. multiply by exp(-2 pi i k1·j2 / n), the twiddle factors
  4. exchange: each rank has whole rows
  5. transform them, length n2               -> X[k1][k2], the transposed order
  6. exchange: the natural order
```

If n1 or n2 does not divide by the number of ranks, rows are not even parts of x or X; then smaller
exchanges before 1 and after 6 move what is beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import opencl_lab.fft as single
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.kernels import lacks_type
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import copied, in_threads
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.layout import Distribution, Shape, Slab, Split, blocks, slab
from opencl_lab.distributed.mpi import agreed, same, world
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm, complex_dtype, scale_of
from opencl_lab.ops.fft.transform import axes_and_lengths, real_type, whole

Axes = Sequence[int]


@dataclass(frozen=True)
class _Task:
    """A transform whose arguments are right."""

    name: str  # fft, ifft, rfft or irfft
    axes: tuple[int, ...]
    norm: Norm
    n: int  # length of the result along the last of the axes, before rfft halves it
    shape: Shape  # of the result
    wanted: Distribution
    natural: bool


def transform(
    name: str,
    a: DistArray,
    axes: Axes | None,
    norm: Norm,
    distribution: Distribution | int | None,
    device: DeviceSpec,
    natural: bool = True,
    n: int | None = None,
) -> DistArray:
    """Make the transform `name` of `opencl_lab.fft`; see `opencl_lab.distributed.fft.fft`."""
    comm = world(getattr(a, "comm", None))
    task = agreed(comm, lambda: _task(name, a, axes, norm, n, distribution, natural))
    same(comm, task, "the arguments")
    where = agreed(comm, lambda: _where(a, device))
    uncut = all(a.layout.grid[axis] == 1 for axis in task.axes)
    if not natural or (a.ndim == 1 and not uncut):
        made = _one_row(a, task, where)
    elif uncut:
        made = _uncut(a, name, task.axes, task, where)
    else:
        made = _in_stages(a, task, where)
    return made.redistribute(task.wanted)


def _task(
    name: str,
    a: DistArray,
    axes: Axes | None,
    norm: Norm,
    n: int | None,
    distribution: Distribution | int | None,
    natural: bool,
) -> _Task:
    """Check the arguments as those of one device are checked."""
    if not isinstance(a, DistArray):
        raise InvalidProblem(f"a distributed transform takes a DistArray, not {type(a).__name__}")
    complex_dtype(a.dtype)
    scale_of(1, norm, False)
    size, before = a.comm.size, a.distribution
    if name == "rfft":
        real_type(a)
    if not natural:
        dimensions = 1 if name == "fft" else 2
        if a.ndim != dimensions:
            raise InvalidProblem(f"{name} with natural=False takes {dimensions}-D, not {a.ndim}-D")
        axes, before = None, slab(0)
    order, _ = axes_and_lengths(a, None, axes)
    if not order and name in ("rfft", "irfft"):
        raise InvalidProblem("a real transform needs at least one axis")
    if len(set(order)) < len(order):
        raise InvalidProblem(f"a distributed transform takes each axis once, not {axes}")
    shape = list(a.shape)
    length = shape[order[-1]] if order else 1
    if name == "irfft":
        length = 2 * (length - 1) if n is None else whole(n, "n")
    for samples in (length, *(shape[axis] for axis in order)):
        if samples < 1:
            raise InvalidProblem(f"a transform needs at least one sample, not {samples}")
    if order:
        shape[order[-1]] = length // 2 + 1 if name == "rfft" else length
    if not natural:
        shape = list(_factors(a.size, size)) if name == "fft" else [a.size]
    result = tuple(shape)
    if distribution is None:
        wanted = _fitting(before, result)
    else:
        wanted = slab(distribution) if isinstance(distribution, int) else distribution
    wanted.layout(result, size)  # refuses one that does not fit
    return _Task(name, tuple(order), norm or "backward", length, result, wanted, bool(natural))


def _where(a: DistArray, device: DeviceSpec) -> dict[str, Any]:
    """Return the queue or the device of this rank's transforms, as arguments of `opencl_lab.fft`.

    One that lacks the precision is refused.
    """
    if a.on_device:
        return {"queue": a.local.queue}
    driven = device_of(a.comm, device)
    lacking = lacks_type(driven, complex_dtype(a.dtype))
    if lacking:
        raise InvalidConfig(f"{lacking}, in which {a.dtype} is transformed; convert it to float32")
    return {"device": driven}


def _fitting(distribution: Distribution, shape: Shape) -> Distribution:
    """Return the distribution with even parts, if its own are not parts of this shape."""
    if not isinstance(distribution, Slab) or distribution.lengths is None:
        return distribution
    fits = sum(distribution.lengths) == shape[distribution.axis]
    return distribution if fits else slab(distribution.axis)


# ------------------------------------------------------------------------ several axes


def _in_stages(x: DistArray, task: _Task, where: dict[str, Any]) -> DistArray:
    """Transform along the axes of each stage, in any order, before those of the next."""
    name, last, others = task.name, task.axes[-1:], task.axes[:-1]
    stages = {
        "rfft": [("rfft", last), ("fft", others)],
        "irfft": [("ifft", others), ("irfft", last)],
    }.get(name, [(name, task.axes)])
    for number, (name, left) in enumerate(stages):
        later = [axis for _, axes in stages[number + 1 :] for axis in axes]
        while left:
            here = tuple(axis for axis in left if x.layout.grid[axis] == 1)
            if here:
                x = _uncut(x, name, here, task, where)
            left = tuple(axis for axis in left if axis not in here)
            if left:
                x = x.redistribute(_next(x, left, later, task.wanted), keep=False)
    return x


def _uncut(x: DistArray, name: str, axes: Axes, task: _Task, where: dict[str, Any]) -> DistArray:
    """Transform along axes that are whole on each rank."""
    function = getattr(single, name + "n")
    how = {"s": (*(-1 for _ in axes[1:]), task.n)} if name == "irfft" else {}
    local = function(x.local, axes=axes, norm=task.norm, **how, **where)
    shape = list(x.shape)
    if name in ("rfft", "irfft"):
        shape[axes[-1]] = local.shape[axes[-1]]
    after = _fitting(x.distribution, tuple(shape))
    return x.like(local, global_shape=tuple(shape), distribution=after)


def _next(x: DistArray, left: Axes, later: Axes, wanted: Distribution) -> Distribution:
    """Return a distribution in which some of the axes `left` are whole.

    Of those that leave the fewest ranks without a part, it is one with the most whole axes of
    these, then of the later ones: slabs, or if their axis is too short for all ranks, pencils, in
    which an axis that is done takes the cuts of one that is left.
    """
    grid, size = x.layout.grid, x.comm.size
    found: list[Distribution] = [_fitting(wanted, x.shape), *map(slab, range(x.ndim))]
    for axis in left:
        for other in range(x.ndim):
            swapped = list(grid)
            swapped[axis], swapped[other] = grid[other], grid[axis]
            found.append(blocks(swapped))

    def merit(one: Distribution) -> tuple[int, ...]:
        parts = one.layout(x.shape, size).grid
        busy = math.prod(map(min, parts, x.shape))
        ready, prepared = (sum(parts[axis] == 1 for axis in axes) for axes in (left, later))
        return min(ready, 1), busy, ready, prepared

    return max(found, key=merit)


# ------------------------------------------------------------------- one row that is cut


def _one_row(a: DistArray, task: _Task, where: dict[str, Any]) -> DistArray:
    """Transform one row as a matrix; see the module. Its parts stay on the host in between."""
    dtype = complex_dtype(a.dtype)
    x = DistArray(a.shape, dtype, a.host().astype(dtype, copy=False), a.distribution, a.comm)
    if task.name == "ifft" and not task.natural:
        made = _row(_both(x, (1, 0), task, where).redistribute(slab(0)))
    else:
        shape = task.shape if not task.natural else _factors(task.n, a.comm.size)
        x = _padded(x, shape) if task.name == "irfft" else x.redistribute(_rows(shape, x.comm))
        matrix = DistArray(shape, dtype, x.local.reshape(-1, shape[1]), slab(0), x.comm)
        made = _both(matrix, (0, 1), task, where).redistribute(slab(0))
        if task.natural:
            made = _transposed(made)
        if task.name == "irfft":
            made = made.like(2 * made.local.real)
        if task.name == "rfft":
            made = _first(made, task.shape[0])
    return a.like(made.local, global_shape=made.shape, distribution=made.distribution)


@lru_cache
def _factors(n: int, ranks: int) -> Shape:
    """Return n1 <= n2 with the product n, as near as can be, and multiples of `ranks` if can be."""
    if ranks == 1:
        return 1, n
    numbers = np.arange(1, math.isqrt(n) + 1)
    divisors = numbers[n % numbers == 0].tolist()
    n1 = max(divisors, key=lambda d: (d % ranks == 0 and n // d % ranks == 0, d))
    return n1, n // n1


def _rows(shape: Shape, comm: Any) -> Slab:
    """Return the distribution of a row of numbers whose parts are rows of a matrix."""
    parts = Split(shape[0], comm.size)
    if shape[0] % comm.size == 0:  # even parts, which may need no exchange
        return slab(0)
    return slab(0, [parts.length(rank) * shape[1] for rank in range(comm.size)])


def _row(matrix: DistArray) -> DistArray:
    """Return the rows of a matrix in ``slab(0)`` one after the other."""
    local = matrix.local.reshape(-1)
    return DistArray(matrix.size, local.dtype, local, _rows(matrix.shape, matrix.comm), matrix.comm)


def _transposed(matrix: DistArray) -> DistArray:
    """Return the columns of a matrix one after the other."""
    columns = matrix.redistribute(slab(1), keep=False).local
    local = copied(columns.T)
    return _row(DistArray(matrix.shape[::-1], local.dtype, local, slab(0), matrix.comm))


def _both(
    matrix: DistArray, order: tuple[int, int], task: _Task, where: dict[str, Any]
) -> DistArray:
    """Transform columns (axis 0) and rows (axis 1) in this order, with twiddle factors between."""
    inverse = task.name in ("ifft", "irfft")
    function = single.ifft if inverse else single.fft
    for axis in order:
        if matrix.shape[axis] == 1:
            continue  # nothing to transform, and all twiddle factors are 1
        matrix = matrix.redistribute(slab(1 - axis), keep=False)
        made = function(matrix.local, axis=axis, norm=task.norm, **where)
        matrix = matrix.like(made)
        if axis == order[0]:
            _twiddle(matrix, inverse)
    return matrix


def _twiddle(matrix: DistArray, inverse: bool) -> None:
    """Multiply the elements (k, j) by exp(-2 pi i k·j / n), or its conjugate, in place.

    k·j < n is exact, so angles are rounded once. Blocks of rows differ by a factor in each column:
    of n1 rows, exponentials are computed for 2 sqrt(n1) only.
    """
    rows, columns = (np.arange(part.start, part.stop) for part in matrix.local_slice())
    turn = (2j if inverse else -2j) * np.pi
    block = math.isqrt(len(rows)) + 1

    def factors(k: Any) -> Any:
        return np.exp(turn * (np.multiply.outer(k, columns) / matrix.size))

    within = factors(np.arange(block))

    def multiply(first: int) -> None:
        part = matrix.local[first : first + block]
        part *= (within[: len(part)] * factors(rows[first])).astype(part.dtype)

    in_threads(multiply, range(0, len(rows), block))


def _first(row: DistArray, count: int) -> DistArray:
    """Return the first elements of a row."""
    bounds = np.minimum(row.layout.splits[0].bounds, count)
    local = row.local[: np.diff(bounds)[row.comm.rank]]
    return DistArray(count, row.dtype, local, slab(0, np.diff(bounds).tolist()), row.comm)


def _padded(halves: DistArray, shape: Shape) -> DistArray:
    """Return n frequencies, in rows of `shape`, of whose inverse the real part is half the result.

    These are the first n // 2 + 1 and zeros: the mirrored ones would add the conjugate. Those
    without a mirror image, 0 and n / 2, are halved, and their imaginary parts are not used.
    """
    comm, n = halves.comm, math.prod(shape)
    bounds = np.asarray(_rows(shape, comm).layout((n,), comm.size).splits[0].bounds)
    count = min(halves.size, n // 2 + 1)
    cut = np.minimum(bounds, count)
    lengths = np.diff(cut)
    lengths[-1] += halves.size - count  # more than are needed
    some = halves.redistribute(slab(0, lengths.tolist())).local
    begin, end = bounds[comm.rank : comm.rank + 2]
    local = np.zeros(end - begin, halves.dtype)
    known = np.diff(cut)[comm.rank]
    local[:known] = some[:known]
    for alone in {0, n // 2} if n % 2 == 0 else {0}:
        if begin <= alone < end:
            local[alone - begin] = local[alone - begin].real / 2
    return DistArray(n, local.dtype, local, _rows(shape, comm), comm)
