"""Products of distributed matrices.

Where all ranks share memory, each multiplies a slab of one matrix by all of the other one, which
lies in that memory once. Else they multiply in a grid: see `opencl_lab.distributed.summa`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array
from opencl_lab.distributed.device_exchange import on_devices, placed
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.exchange import by_memory
from opencl_lab.distributed.freivalds import verify_product
from opencl_lab.distributed.grid import Grid
from opencl_lab.distributed.layout import (
    Distribution,
    Gathered,
    Layout,
    Run,
    Slab,
    as_distribution,
    slab,
)
from opencl_lab.distributed.mpi import agreed, collective, mpi, same, world
from opencl_lab.distributed.node import NodeMemory, node_of
from opencl_lab.distributed.packed_b import packed_together
from opencl_lab.distributed.summa import multiply
from opencl_lab.ops.gemm.functions import gemm as plain_gemm
from opencl_lab.ops.gemm.packed.before import form_ahead, multiply_packed
from opencl_lab.ops.gemm.problem import CONJUGATED, TRANSPOSED, GemmProblem
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.exchange import to_device, to_host

MOVED = 64
"""Multiplications in the time that it takes to move a number within a node."""


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
        The ranks along the rows and columns of the result, and along k. By default each rank makes
        a slab if all share memory, else it is the grid that sends least. ``blocks(grid)`` is the
        distribution in which nothing is moved before.
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
    matrices = {"a": a, "b": b} | ({} if used is None else {"c": used})
    found = there = None
    if asked is None:
        # Each rank has all of one matrix, and its part of the product.
        most = max(a.size, b.size) + math.ceil(problem.m * problem.n / comm.size)
        parts = [matrix.local for matrix in matrices.values()]
        there = placed(comm, parts, device, more=most * a.dtype.itemsize)
        pairs = zip(matrices.items(), there or (), strict=False)
        near = {name: matrix.like(part) for (name, matrix), part in pairs}
        found = _by_slabs(comm, problem, near or matrices, how, device, layout)
    if found is None:
        result = multiply(comm, problem, matrices, how, device, layout, asked)
        found = a.like(result, target, shape)
    found = found.redistribute(target)
    if there is not None:
        found = a.like(found.host(), target, shape)
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


def _by_slabs(
    comm: Any,
    problem: GemmProblem,
    matrices: dict[str, DistArray],
    how: dict[str, Any],
    device: Device,
    after: Layout,
) -> DistArray | None:
    """Return the product, in slabs, where the ranks share memory; None if they do not.

    Each multiplies rows of op(A) by all of op(B), which lies in that memory once, or all of op(A)
    by columns.
    """
    node = node_of(comm)
    if node is None and comm.size > 1:
        return None
    layouts = {name: array.layout for name, array in matrices.items()}
    by_rows = _by_rows(problem, layouts, after, comm.size)
    cut, whole = ("a", "b") if by_rows else ("b", "a")
    transposed = {"a": problem.trans_a, "b": problem.trans_b}[cut]
    axis = 0 if by_rows else 1
    # What an exchange returns can be used until the next but one.
    parts = {"c": matrices["c"].redistribute(axis).local} if "c" in matrices else {}
    parts[cut] = matrices[cut].moved(axis ^ transposed).local
    first, given = matrices["a"], matrices[whole]
    shape = (problem.m, problem.n)
    if node is not None and by_rows:
        packed = _by_packed_panels(node, problem, parts, given, device)
        if packed is not None:
            return first.like(packed, slab(axis), shape)
    on_device = first.on_device

    def product(which: dict[str, Any], **other: Any) -> Any:
        if on_device:
            where: dict[str, Any] = {"queue": first.local.queue}
            sides = {name: to_device(part, **where) for name, part in which.items()}
        else:
            where = {"device": device}
            sides = {name: to_host(part) for name, part in which.items()}
        return plain_gemm(sides["a"], sides["b"], c=sides.get("c"), **how | other, **where)

    made = None
    if node is None:
        parts[whole] = given.local
    else:
        # Of a matrix that is cut along k, a rank multiplies its own part while the others come.
        along = {"a": 1 ^ problem.trans_a, "b": 0 ^ problem.trans_b}
        pieces = _along_k(given, along[whole])
        begun = []

        def begin() -> None:
            # Pieces are rounded to the dtype before they are added up: not for float16, and not
            # where a factor or c might make one infinite that the whole is not.
            exact = problem.dtype != np.float16 and abs(problem.alpha) <= 1 and problem.beta == 0
            if on_device and pieces and exact:
                run = pieces[comm.rank]
                mine = {cut: _piece(parts[cut], along[cut], run), whole: given.local}
                begun.append(product(parts | mine))

        everywhere = Gathered(given.shape)
        parts[whole] = on_devices(comm, given.local, given.layout, everywhere, begin)
        if parts[whole] is None:
            parts[whole] = by_memory(node, given.host(), given.layout, everywhere)
        elif begun:
            (made,) = begun
            low, high = pieces[comm.rank]
            for run in ((0, low), (high, problem.k)):
                if run[0] < run[1]:
                    some = {name: _piece(parts[name], along[name], run) for name in "ab"}
                    made = product({**some, "c": made}, beta=1)
        if parts[whole] is None:
            return None
    if made is None:
        made = product(parts)
    return first.like(made, slab(axis), shape)


def _by_packed_panels(
    node: NodeMemory, problem: GemmProblem, parts: dict[str, Any], b: DistArray, device: Device
) -> Array | None:
    """Return this rank's rows of the product by a B that all ranks of a node pack together.

    None on all ranks, if some arrays are on devices, if a device does not pack B, or not in the
    same panels as the others, or if the node has no room for these.
    """
    form = None
    simple = all(len(run) < 2 for rank in range(b.comm.size) for run in b.layout.runs(rank))
    if simple and not any(map(is_device_array, (*parts.values(), b.local))):
        most = math.ceil(problem.m / b.comm.size)
        form = form_ahead(replace(problem, m=most), device)
    panels = None if form is None else (form.packed_shape, form.real_type.name)
    if any(found is None or found != panels for found in b.comm.allgather(panels)):
        return None
    assert form is not None
    packed = packed_together(node, b, form)
    if packed is None:
        return None
    here = replace(problem, m=parts["a"].shape[1 if problem.trans_a else 0])
    made: Array = multiply_packed(here, form, {**parts, "packed_b": packed}, device.queue())
    return made


def _along_k(array: DistArray, axis: int) -> list[Run]:
    """Return the indices of k that each rank has of a matrix; none if it is cut otherwise."""
    bounds = array.layout.splits[axis]
    if array.layout.grid[axis] != array.comm.size or bounds.block is not None:
        return []
    return list(pairwise(bounds.bounds))


def _piece(part: Any, axis: int, run: Run) -> Any:
    """Return some indices of an axis of a matrix."""
    return part[slice(*run)] if axis == 0 else part[:, slice(*run)]


def _by_rows(problem: GemmProblem, layouts: dict[str, Layout], after: Layout, ranks: int) -> bool:
    """Return whether slabs of rows of the result take less time than slabs of columns."""
    m, n, k = problem.m, problem.n, problem.k
    costs = []
    for axis in (0, 1):
        cut, transposed = ("b", problem.trans_b) if axis else ("a", problem.trans_a)
        sides = [(layouts[cut], axis ^ transposed), (after, axis)]
        sides += [(layouts["c"], axis)] if "c" in layouts else []
        moved = m * k if axis else k * n
        for layout, cut_axis in sides:
            if layout != slab(cut_axis).layout(layout.shape, ranks):
                moved += math.prod(layout.shape)
        busiest = math.ceil(m / ranks) * n if axis == 0 else m * math.ceil(n / ranks)
        costs.append(busiest * k + MOVED * moved / ranks)
    return costs[0] <= costs[1]
