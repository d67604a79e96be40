"""Products of distributed matrices, in a grid of ranks with two or three axes.

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
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.exchange import Array, redistribute
from opencl_lab.distributed.freivalds import verify_product
from opencl_lab.distributed.grid import Grid, Operand, best_grid, part_of
from opencl_lab.distributed.layout import (
    Distribution,
    Run,
    Shape,
    Slab,
    Split,
    as_distribution,
    slab,
)
from opencl_lab.distributed.mpi import agreed, collective, mpi, phases, same, world
from opencl_lab.ops.gemm.functions import gemm as plain_gemm
from opencl_lab.ops.gemm.problem import CONJUGATED, TRANSPOSED, GemmProblem
from opencl_lab.runtime.exchange import to_device

PANEL = 1024
"""Most columns of A that are broadcast at once."""


def gemm(
    a: DistArray,
    b: DistArray,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    c: DistArray | None = None,
    trans_a: bool | str | int = False,
    trans_b: bool | str | int = False,
    precision: str = "native",
    distribution: Distribution | int | None = None,
    grid: tuple[int, ...] | None = None,
    check: bool = False,
    comm: Any = None,
    device: Device | str | int | None = None,
) -> DistArray:
    """Return ``alpha * op(a) @ op(b) + beta * c`` of distributed matrices.

    Parameters
    ----------
    a, b : DistArray
        Matrices of one dtype, those of `opencl_lab.gemm`; of shapes (m, k) and (k, n), or
        transposed. In any distribution: they are moved to the one in which they are multiplied.
    alpha, beta, trans_a, trans_b, precision
        As in `opencl_lab.gemm`.
    c : DistArray, optional
        Of shape (m, n). It is not changed.
    distribution : Slab, Blocks or int, optional
        That of the result; an integer stands for ``slab(axis)``. By default the one of `c`, or else
        of `a`.
    grid : tuple of int, optional
        The ranks along the rows and columns of the result, and along k. By default the grid that
        sends least. ``blocks(grid)`` is the distribution in which nothing is moved before.
    check : bool
        Whether to check the result by products with random vectors, which takes n**2 operations
        (Freivalds 1977). A row whose error is larger than what rounding explains passes with a
        probability of at most a quarter; rows that may overflow are left out.
    comm : mpi4py.MPI.Comm, optional
        That of `a`, if it is given.
    device : Device, str or int, optional
        As `device_of` takes it.

    Returns
    -------
    DistArray
        Of shape (m, n) and the dtype of `a`; on a device if the parts of `a` are.

    Raises
    ------
    InvalidProblem
        On all ranks, for what `opencl_lab.gemm` refuses, for stacks of matrices, and for arrays of
        different communicators.
    InvalidConfig
        On all ranks, for a grid that has not as many places as there are ranks.
    WrongProduct
        On all ranks, if the check fails.
    """
    return _gemm(
        a, b, c, distribution, grid, check, comm, device,
        {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b,
         "precision": precision},
    )  # fmt: skip


@collective
def _gemm(
    a: DistArray,
    b: DistArray,
    c: DistArray | None,
    given_distribution: Distribution | int | None,
    wanted: tuple[int, ...] | None,
    check: bool,
    given: Any,
    spec: Device | str | int | None,
    how: dict[str, Any],
) -> DistArray:
    comm = world(getattr(a, "comm", None) if given is None else given)
    distribution = None if given_distribution is None else as_distribution(given_distribution)
    same(comm, (how, distribution, wanted, check, c is None), "the arguments")
    problem = agreed(comm, lambda: _problem(comm, a, b, c, how))
    shape = (problem.m, problem.n)
    target = distribution or (a if c is None else c).distribution
    if isinstance(target, Slab) and distribution is None:
        target = slab(target.axis)  # the lengths of another matrix's slabs do not fit
    layout = agreed(comm, lambda: target.layout(shape, comm.size))
    used = None if problem.beta == 0 else c
    asked = agreed(comm, lambda: _checked(wanted, comm.size))
    device = agreed(comm, lambda: device_of(comm, spec))
    if comm.size == 1:
        local = None if used is None else used.local
        where: dict[str, Any] = {} if a.on_device else {"device": device}
        result = plain_gemm(a.local, b.local, c=local, **how, **where)
    else:
        grid = asked or best_grid(comm, problem, a.layout, b.layout, layout)
        parts = {
            name: redistribute(comm, array.host(), array.layout, Operand(name, problem, grid))
            for name, array in (("a", a), ("b", b), ("c", used))
            if array is not None
        }
        product = _multiply(comm, problem, grid, parts, how, device)
        result = redistribute(comm, product, Operand("result", problem, grid), layout)
    found = a.like(result, global_shape=shape, distribution=target)
    if check:
        verify_product(found, a, b, used, problem)
    return found


def _problem(
    comm: Any, a: DistArray, b: DistArray, c: DistArray | None, how: dict[str, Any]
) -> GemmProblem:
    """Return the problem, or raise what is wrong with the arguments."""
    arrays = {"a": a, "b": b} | ({} if c is None else {"c": c})
    for name, array in arrays.items():
        if not isinstance(array, DistArray) or array.ndim != 2:
            raise InvalidProblem(f"{name} must be a DistArray with two axes, not {array!r}")
        if mpi().Comm.Compare(array.comm, comm) > mpi().CONGRUENT:
            raise InvalidProblem(f"{name} is on another communicator")
        if array.dtype != a.dtype:
            raise InvalidProblem(f"a is {a.dtype}, and {name} is {array.dtype}")
    words = [how[name] for name in ("trans_a", "trans_b")]
    words = [word.upper() if isinstance(word, str) else word for word in words]
    if any(word not in TRANSPOSED for word in words):
        raise InvalidProblem(f"trans_a and trans_b must be a bool or one of N, T, C, not {words}")
    trans_a, trans_b = (TRANSPOSED[word] for word in words)
    (m, k), (inner, n) = a.shape[:: 1 - 2 * trans_a], b.shape[:: 1 - 2 * trans_b]
    if k != inner:
        raise InvalidProblem(f"a has {k} columns and b has {inner} rows, after transposing")
    if how["beta"] != 0 and (c is None or c.shape != (m, n)):
        raise InvalidProblem(f"c must have the shape {(m, n)} where beta is not 0")
    return GemmProblem(
        m, n, k, a.dtype, how["alpha"], how["beta"], trans_a, trans_b, how["precision"],
        words[0] in CONJUGATED, words[1] in CONJUGATED,
    )  # fmt: skip


def _checked(wanted: tuple[int, ...] | None, ranks: int) -> Grid | None:
    if wanted is None:
        return None
    if len(wanted) not in (2, 3) or math.prod(wanted) != ranks or min(wanted) < 1:
        raise InvalidConfig(
            f"a grid of {ranks} ranks has 2 or 3 numbers with that product: {wanted}"
        )
    return Grid(*wanted)


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
    return np.asarray(result.get() if resident else result)


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
