"""Products of matrices in a grid of ranks with two or three axes, panel by panel.

```text
 layer 0: k in the first half            layer 1: k in the second half
          B                                       B
   A   C 0 1      panel by panel: its A along the rows of the grid, its B along the columns
       C 2 3      then C is added up over the layers
```

With one layer this is SUMMA (van de Geijn and Watts 1997): a panel of columns of A and the same
rows of B are broadcast while the panel before is multiplied. With several layers each has a part of
k, so that less is broadcast, and as many copies of C are kept (Solomonik and Demmel 2011).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.exchange import redistribute
from opencl_lab.distributed.grid import Grid, Operand, best_grid, part_of
from opencl_lab.distributed.layout import Layout, Run, Shape, Split
from opencl_lab.distributed.mpi import mpi, phases
from opencl_lab.ops.gemm.functions import gemm as plain_gemm
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.runtime.exchange import to_device, to_host

PANEL = 1024
"""Most columns of A that are broadcast at once."""


def multiply(
    comm: Any,
    problem: GemmProblem,
    matrices: Mapping[str, DistArray],
    how: dict[str, Any],
    device: Device,
    after: Layout,
    grid: Grid | None = None,
) -> Array:
    """Return this rank's part of ``alpha * op(a) @ op(b) + beta * c``, in the layout `after`.

    `how` has the arguments of `opencl_lab.gemm`. Without a grid, it is the one that sends least.
    """
    grid = grid or best_grid(comm, problem, matrices["a"].layout, matrices["b"].layout, after)
    parts = {
        name: redistribute(comm, array.host(), array.layout, Operand(name, problem, grid))
        for name, array in matrices.items()
    }
    product = _multiply(comm, problem, grid, parts, how, device)
    return redistribute(comm, product, Operand("result", problem, grid), after)


def _multiply(
    comm: Any,
    problem: GemmProblem,
    grid: Grid,
    parts: dict[str, Array],
    how: dict[str, Any],
    device: Device,
) -> Array:
    """Return this rank's part of the product, from its parts of the matrices."""
    row, column, layer = grid.coordinates(comm.rank)
    m, n = Operand("c", problem, Grid(grid.rows, grid.columns)).local_shape(
        row * grid.columns + column
    )
    with ExitStack() as groups:
        along_row, along_column, along_layers = (
            groups.enter_context(_group(comm, color, key))
            for color, key in (
                (layer * grid.rows + row, column),
                (layer * grid.columns + column, row),
                (row * grid.columns + column, layer),
            )
        )
        pieces = _panels(problem, grid, layer)
        sides = (
            (along_row, parts["a"], m, problem.trans_a, grid.columns),
            (along_column, parts["b"], n, not problem.trans_b, grid.rows),
        )
        layer_run = part_of((0, problem.k), grid.layers, layer)
        panels = _broadcast(pieces, layer_run, sides)
        if problem.dtype == np.float16:  # added up in float32 by one product alone
            panels = iter([_joined([(x.copy(), y.copy()) for x, y in panels], problem)])
        total = parts.get("c") if layer == 0 else None
        product = _sum(panels, total, how, device, (m, n), problem)
        return _over_layers(along_layers, product)


class _group:
    """A communicator of the ranks with the same color; freed at the end."""

    def __init__(self, comm: Any, color: int, key: int):
        self._comm = comm.Split(color, key)

    def __enter__(self) -> Any:
        return self._comm

    def __exit__(self, *error: object) -> None:
        if error[0] is None:  # others may not come to it
            self._comm.Free()


def _panels(problem: GemmProblem, grid: Grid, layer: int) -> list[Run]:
    """Return runs of k, of which each is on one column of the grid, and on one row."""
    if problem.alpha == 0:
        return []
    run = part_of((0, problem.k), grid.layers, layer)
    cuts = {run[0], run[1]}
    for parts in (grid.columns, grid.rows):
        cuts |= {part_of(run, parts, part)[0] for part in range(parts)}
    found = []
    for begin, end in pairwise(sorted(cuts)):
        pieces = math.ceil((end - begin) / PANEL)
        found += [part_of((begin, end), pieces, piece) for piece in range(pieces)]
    return found


def _broadcast(pieces: list[Run], whole: Run, sides: Any) -> Iterator[tuple[Array, Array]]:
    """Yield the panels of A and B; the next ones are on their way meanwhile."""
    MPI = mpi()
    kept: dict[tuple[int, int, Shape], Array] = {}

    def room(side: int, number: int, shape: Shape, dtype: Any) -> Array:
        """Return memory for every second panel: fresh memory takes longer to touch than to fill."""
        key = side, number % 2, shape
        if key not in kept:
            kept[key] = np.empty(shape, dtype)
        return kept[key]

    def post(number: int) -> tuple[list[Array], list[Any]]:
        buffers, requests, piece = [], [], pieces[number]
        for side, (group, local, length, first, parts) in enumerate(sides):
            owned = [part_of(whole, parts, part) for part in range(parts)]
            owner = next(i for i, run in enumerate(owned) if run[0] <= piece[0] < run[1])
            width = piece[1] - piece[0]
            shape = (width, length) if first else (length, width)
            if group.rank != owner:
                buffer = room(side, number, shape, local.dtype)
            else:
                inside = slice(piece[0] - owned[owner][0], piece[1] - owned[owner][0])
                buffer = local[inside] if first else local[:, inside]
                if not buffer.flags.c_contiguous:
                    np.copyto(room(side, number, shape, local.dtype), buffer)
                    buffer = room(side, number, shape, local.dtype)
            requests.append(group.Ibcast([buffer.reshape(-1).view(np.uint8), MPI.BYTE], owner))
            buffers.append(buffer)
        return buffers, requests

    coming = post(0) if pieces else ([], [])
    for number in range(len(pieces)):
        buffers, requests = coming
        with phases.communication(sides[0][0]):
            MPI.Request.Waitall(requests)
        if number + 1 < len(pieces):
            coming = post(number + 1)
        yield buffers[0], buffers[1]


def _joined(panels: list[tuple[Array, Array]], problem: GemmProblem) -> tuple[Array, Array]:
    axes = (0 if problem.trans_a else 1, 1 if problem.trans_b else 0)
    left, right = zip(*panels, strict=True) if panels else ((), ())
    if not panels:
        return np.empty((0, 0), problem.dtype), np.empty((0, 0), problem.dtype)
    return np.concatenate(left, axes[0]), np.concatenate(right, axes[1])


def _sum(
    panels: Iterator[tuple[Array, Array]],
    total: Array | None,
    how: dict[str, Any],
    device: Device,
    shape: Shape,
    problem: GemmProblem,
) -> Array:
    """Return the sum of the products of panels and of ``beta * total``."""
    resident = device.kind != "cpu"  # there, host arrays are used where they lie
    place = partial(to_device, device=device) if resident else np.asarray
    where: dict[str, Any] = {} if resident else {"device": device}
    beta = how["beta"] if total is not None else 0.0
    result: Any = None if total is None else place(total)
    for left, right in panels:
        if 0 in (*shape, left.size, right.size):
            continue
        out = None if result is None or result is total else result
        result = plain_gemm(
            place(left), place(right), c=result, out=out, **{**how, "beta": beta}, **where
        )
        beta = 1.0
    if result is None:
        return np.zeros(shape, problem.dtype)
    if beta != 1.0 and result.size:  # nothing was added
        empty = np.empty((shape[0], 0), problem.dtype), np.empty((0, shape[1]), problem.dtype)
        kept = {"alpha": 0.0, "beta": beta, "c": result}
        result = plain_gemm(place(empty[0]), place(empty[1]), **kept, **where)
    return to_host(result)


def _over_layers(group: Any, product: Array) -> Array:
    """Add up over the layers; each keeps a part of the rows."""
    if group.size == 1:
        return product
    bounds = Split(product.shape[0], group.size).bounds
    counts = [(end - begin) * product.shape[1] for begin, end in pairwise(bounds)]
    result = np.empty(
        (bounds[group.rank + 1] - bounds[group.rank], product.shape[1]), product.dtype
    )
    with phases.communication(group):
        group.Reduce_scatter(product, result, counts, op=mpi().SUM)
    return result
