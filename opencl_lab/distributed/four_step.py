"""The transform of one row that is cut, arranged as a matrix.

With n = n1·n2, sample j = j1·n2 + j2 and frequency k = k1 + n1·k2:

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

Source: D. H. Bailey, "FFTs in external or hierarchical memory", 1990; C. Van Loan, "Computational
Frameworks for the Fast Fourier Transform", 1992.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

import opencl_lab.fft as single
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array, copied, copy_all, in_threads, new_array
from opencl_lab.distributed.device_exchange import ROOM, between_devices, room_of
from opencl_lab.distributed.exchange import Region, by_memory
from opencl_lab.distributed.layout import Run, Shape, Slab, Split, slab
from opencl_lab.distributed.mpi import everywhere, phases
from opencl_lab.distributed.node import NodeMemory, node_of
from opencl_lab.distributed.transform_task import TransformTask, factors_of
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.problem import complex_dtype
from opencl_lab.runtime.session import session_of


def one_row(a: DistArray, task: TransformTask, where: dict[str, Any]) -> DistArray:
    """Transform one row as a matrix; see the module. Its parts are on the host in between.

    But parts on GPUs of one node go to one of them, if it has room, and the result comes back: that
    is less to move.
    """
    if task.natural and _fits_one_device(a):
        return _on_one_device(a, task, where)
    dtype = complex_dtype(a.dtype)
    x = DistArray(a.shape, dtype, a.host().astype(dtype, copy=False), a.distribution, a.comm)
    if task.name == "ifft" and not task.natural:
        made = _row(_both(x, (1, 0), task, where)[0].redistribute(slab(0)))
    else:
        shape = task.shape if not task.natural else factors_of(task.n, a.comm.size)
        x = _padded(x, shape) if task.name == "irfft" else x.redistribute(_rows(shape, x.comm))
        matrix = DistArray(shape, dtype, x.local.reshape(-1, shape[1]), slab(0), x.comm)
        if task.natural:
            made = _natural(matrix, task, where)
        else:
            made = _both(matrix, (0, 1), task, where)[0].redistribute(slab(0))
        if task.name == "irfft":
            made = made.like(2 * made.local.real)
        if task.name == "rfft":
            made = _first(made, task.shape[0])
    local = made.local
    if a.comm.size == 1 or a.size == 1:  # there was nothing to transform or to move
        local = local.copy()
    return a.like(local, global_shape=made.shape, distribution=made.distribution)


def _fits_one_device(a: DistArray) -> bool:
    """Return whether ranks move parts between devices, and one holds the row and what it needs."""
    if between_devices(a.comm, a.local) is None:
        return False
    room = room_of(a.comm, session_of(a.local.queue).device)
    fits = ROOM * a.size * complex_dtype(a.dtype).itemsize <= room
    return everywhere(a.comm, fits)


def _on_one_device(a: DistArray, task: TransformTask, where: dict[str, Any]) -> DistArray:
    (n,), others = task.shape, [0] * (a.comm.size - 1)
    x = a.moved(slab(0, [a.size, *others]))
    how = {"n": task.n} if task.name == "irfft" else {}
    if a.comm.rank == 0:
        local = getattr(single, task.name)(x.local, norm=task.norm, **how, **where)
    else:
        kind = complex_dtype(a.dtype)
        local = np.empty(0, kind if task.name != "irfft" else real_dtype(kind))
    return a.like(local, global_shape=(n,), distribution=slab(0, [n, *others]))


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


def _natural(matrix: DistArray, task: TransformTask, where: dict[str, Any]) -> DistArray:
    """Transform the columns of a matrix, then its rows; return the columns one after the other.

    Where the ranks share memory, they read the columns of each other there.
    """
    comm, shape, node = matrix.comm, matrix.shape[::-1], node_of(matrix.comm)
    before, after = (slab(axis).layout(matrix.shape, comm.size) for axis in (0, 1))
    shapes = [before.local_shape(rank) for rank in range(comm.size)]
    made, parts = _both(matrix, (0, 1), task, where, node, shapes)
    if node is None or parts is None:
        local = copied(made.moved(slab(1)).local.T)
    else:
        local = new_array(after.local_shape(comm.rank)[::-1], matrix.dtype)
        with phases.communication(comm):
            node.fence()
            mine = slice(*Split(matrix.shape[1], comm.size).bounds[comm.rank :][:2])
            bounds = Split(matrix.shape[0], comm.size).bounds
            copy_all(
                (local[:, begin:end], part[:, mine].T)
                for part, (begin, end) in zip(parts, pairwise(bounds), strict=True)
            )
    return _row(DistArray(shape, local.dtype, local, slab(0), comm))


def _both(
    matrix: DistArray,
    order: tuple[int, int],
    task: TransformTask,
    where: dict[str, Any],
    node: NodeMemory | None = None,
    shapes: Sequence[Shape] = (),
) -> tuple[DistArray, list[Array] | None]:
    """Transform columns (axis 0) and rows (axis 1) in this order, with twiddle factors between.

    If ranks share memory, `node`, and there is room, the result is a part of those of all ranks
    there, which have these `shapes`; they are returned, too.
    """
    inverse = task.name in ("ifft", "irfft")
    function = single.ifft if inverse else single.fft
    first, second = order
    if matrix.shape[first] > 1:  # else there is nothing to transform, and all factors are 1
        matrix = matrix.moved(slab(second))
        made = function(matrix.local, axis=first, norm=task.norm, **where)
        matrix = _twiddled(matrix.like(made), first, inverse)
    parts = None
    if matrix.shape[second] > 1:
        matrix = matrix.moved(slab(first))
        parts = None if node is None else node.parts(shapes, matrix.dtype)
        out = {} if parts is None else {"out": parts[matrix.comm.rank]}
        made = function(matrix.local, axis=second, norm=task.norm, **where, **out)
        matrix = matrix.like(made)
    return matrix, parts


def _twiddled(matrix: DistArray, axis: int, inverse: bool) -> DistArray:
    """Multiply the elements (k, j) by exp(-2 pi i k·j / n), or its conjugate; cut `axis`.

    The product is formed on the way to the other ranks, if they share memory.
    """
    here = matrix.local_slice()
    places = tuple((part.start, part.stop) for part in here)
    block, within, starts = _twiddles(matrix.size, places, inverse, matrix.dtype)

    def multiply(piece: tuple[Array, Array, int, slice]) -> None:
        target, source, first, columns = piece
        factors = within[first % block :][: len(source), columns]
        np.multiply(source, factors, out=target)
        np.multiply(target, starts[first // block, columns], out=target)

    def put(regions: list[Region]) -> None:
        pieces = []
        for target, source, (rows, columns) in regions:
            first = rows.start
            while first < rows.stop:
                stop = min(first - first % block + block, rows.stop)
                part = slice(first - rows.start, stop - rows.start)
                pieces.append((target[part], source[part], first, columns))
                first = stop
        in_threads(multiply, pieces)

    node, wanted = node_of(matrix.comm), slab(axis)
    after = wanted.layout(matrix.shape, matrix.comm.size)
    made = None
    if node is not None:
        made = by_memory(node, matrix.local, matrix.layout, after, put)
    if made is None:
        local = matrix.local
        put([(local, local, tuple(slice(0, length) for length in local.shape))])
        return matrix.moved(wanted)
    return matrix.like(made, distribution=wanted)


@lru_cache(maxsize=4)
def _twiddles(
    n: int, places: tuple[Run, ...], inverse: bool, dtype: np.dtype[Any]
) -> tuple[int, Array, Array]:
    """Return the twiddle factors of some rows and columns: of a block of rows, and between blocks.

    k·j < n is exact, so angles are rounded once. Blocks of rows differ by a factor in each column:
    of n1 rows, exponentials are computed for 2 sqrt(n1) only.
    """
    rows, columns = (np.arange(*place) for place in places)
    turn = (2j if inverse else -2j) * np.pi
    block = math.isqrt(len(rows)) + 1

    def factors(k: Array) -> Array:
        found: Array = np.exp(turn * (np.multiply.outer(k, columns) / n)).astype(dtype)
        return found

    return block, factors(np.arange(block)), factors(rows[::block])


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
