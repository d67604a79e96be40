"""Moving the parts of an array between two layouts: by memory of the node, else by messages.

The elements between two ranks are those that the one has before and the other after; both sides
list them in the order of the global array. Where all ranks are on one node, each copies to the part
of each other one. Else there is one `Alltoallw`: derived datatypes of MPI describe the elements in
the local arrays themselves, so nothing is packed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np

from opencl_lab.distributed.copying import Array, copied, copy_all
from opencl_lab.distributed.layout import Gathered, Run, Shape, common, places
from opencl_lab.distributed.mpi import mpi, phases
from opencl_lab.distributed.node import NodeMemory, node_of

Region: TypeAlias = tuple[Array, Array, tuple[slice, ...]]
"""A target, a source, and where that is in the local part."""

MOST_REGIONS = 4096
"""Regions of an array that are copied one by one; more are picked by index arrays."""


class Placement(Protocol):
    """What `Layout` and `Gathered` have in common."""

    def runs(self, rank: int) -> list[list[Run]]:
        """Return the indices that a rank has along each axis."""

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of what a rank has."""


def selection(itemsize: int, shape: Sequence[int], wanted: Sequence[Sequence[Run]]) -> Any:
    """Return a datatype, which must be freed, of some elements of a dense array.

    `wanted` has runs of positions along each axis; the elements are those of their product.
    """
    MPI = mpi()
    kind, stride = MPI.BYTE.Create_contiguous(itemsize), itemsize
    for n, runs in zip(reversed(shape), reversed(wanted), strict=True):
        lengths = [end - begin for begin, end in runs]
        inner = kind.Create_hindexed(lengths, [begin * stride for begin, _ in runs])
        kind.Free()
        stride *= n
        kind = inner.Create_resized(0, stride)
        inner.Free()
    return kind.Commit()


def redistribute(
    comm: Any, local: Array, before: Placement, after: Placement, keep: bool = True
) -> Array:
    """Return this rank's part of the layout `after`, from that of `before`.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    local : numpy.ndarray
        Of the shape that `before` says.
    before, after : Layout or Gathered
        Of the same global shape; in `before` each element is on one rank.
    keep : bool
        False, if the result is only read, and not after the next exchange but one. It may then be
        `local`, or memory that all ranks of the node share.
    """
    if all(before.runs(rank) == after.runs(rank) for rank in range(comm.size)):
        return local
    node = node_of(comm)
    made = None if node is None else by_memory(node, local, before, after)
    if made is None:
        return _by_messages(comm, np.ascontiguousarray(local), before, after)
    if not keep:
        return made
    with phases.communication(comm):
        return copied(made)


def by_memory(
    node: NodeMemory,
    local: Array,
    before: Placement,
    after: Placement,
    copy: Callable[[list[Region]], None] | None = None,
) -> Array | None:
    """Return this rank's part in memory that the node shares; None if there is no room.

    It is read until the next exchange but one. What all ranks get, they have together. `copy`
    may compute what it writes: it is given targets, sources, and where these are in `local`.
    """
    comm = node.comm
    together = isinstance(after, Gathered) and after.root is None
    others = [0] if together else _turns(comm)
    with phases.communication(comm):
        shapes = [after.local_shape(rank) for rank in range(1 if together else comm.size)]
        parts = node.parts(shapes, local.dtype)
        if parts is None:
            return None
        regions, mine = list[Region](), before.runs(comm.rank)
        for other in others:
            for there, here in _regions(after.runs(other), mine):
                if isinstance(here[0], slice):
                    regions.append((parts[other][there], local[here], here))
                else:
                    assert copy is None  # it takes slices only
                    parts[other][there] = local[here]
        if copy is None:
            copy_all((target, source) for target, source, _ in regions)
        else:
            copy(regions)
        node.fence()
    return parts[0 if together else comm.rank]


def _turns(comm: Any) -> list[int]:
    """Return all ranks, this one first: so ranks begin in different places."""
    return [(comm.rank + i) % comm.size for i in range(comm.size)]


def _regions(one: Sequence[Sequence[Run]], other: Sequence[Sequence[Run]]) -> Iterator[Any]:
    """Yield indices of the common elements of two parts: in the one, and in the other."""
    axes = [common(a, b) for a, b in zip(one, other, strict=True)]
    if not all(axes):
        return
    sides = [
        [places(have, shared, joined=False) for have, shared in zip(part, axes, strict=True)]
        for part in (one, other)
    ]
    if math.prod(map(len, axes)) <= MOST_REGIONS:
        for pairs in product(*(zip(a, b, strict=True) for a, b in zip(*sides, strict=True))):
            yield tuple(tuple(slice(*run) for run in side) for side in zip(*pairs, strict=True))
    else:
        yield tuple(
            np.ix_(*(np.concatenate([np.arange(*run) for run in runs]) for runs in side))
            for side in sides
        )


def _by_messages(comm: Any, local: Array, before: Placement, after: Placement) -> Array:
    MPI, me = mpi(), comm.rank
    result = np.empty(after.local_shape(me), local.dtype)
    size = local.dtype.itemsize
    mine, wanted = before.runs(me), after.runs(me)
    kinds: list[list[Any]] = [[], []]
    counts: list[list[int]] = [[], []]
    for other in range(comm.size):
        for side, (own, theirs, shape) in enumerate(
            ((mine, after.runs(other), local.shape), (wanted, before.runs(other), result.shape))
        ):
            shared = [common(a, b) for a, b in zip(own, theirs, strict=True)]
            empty = not all(shared)
            counts[side].append(0 if empty else 1)
            there = [] if empty else [places(a, b) for a, b in zip(own, shared, strict=True)]
            kinds[side].append(MPI.BYTE if empty else selection(size, shape, there))
    nothing = [0] * comm.size
    with phases.communication(comm):
        comm.Alltoallw(
            [_bytes(local), (counts[0], nothing), kinds[0]],
            [_bytes(result), (counts[1], nothing), kinds[1]],
        )
    for kind in (*kinds[0], *kinds[1]):
        if kind != MPI.BYTE:
            kind.Free()
    return result


def exchange_rows(
    comm: Any, local: Array, counts: Sequence[int], keep: bool = True
) -> tuple[Array, list[int]]:
    """Send consecutive elements to each rank; return those from all ranks, and how many from each.

    `counts` says how many of the leading axis go to each rank, in their order; `keep` as for
    `redistribute`.
    """
    sent = [int(count) for count in counts]
    node, row = node_of(comm), local.shape[1:]
    if node is not None:
        table = np.array(comm.allgather(sent))
        got = table[:, comm.rank].tolist()
        with phases.communication(comm):
            parts = node.parts([(int(rows), *row) for rows in table.sum(axis=0)], local.dtype)
            if parts is not None:
                before, ends = table[: comm.rank].sum(axis=0), np.cumsum(sent)
                copy_all(
                    (
                        parts[other][before[other] : before[other] + sent[other]],
                        local[ends[other] - sent[other] : ends[other]],
                    )
                    for other in _turns(comm)
                )
                node.fence()
                mine = parts[comm.rank]
                return (copied(mine) if keep else mine), got
    got = comm.alltoall(sent)
    with phases.communication(comm):
        return _rows_by_messages(comm, np.ascontiguousarray(local), sent, got), got


def _rows_by_messages(comm: Any, local: Array, sent: list[int], got: list[int]) -> Array:
    result = np.empty((sum(got), *local.shape[1:]), local.dtype)
    row = mpi().BYTE.Create_contiguous(local.dtype.itemsize * math.prod(local.shape[1:])).Commit()
    comm.Alltoallv(
        [_bytes(local), (sent, _starts(sent)), row], [_bytes(result), (got, _starts(got)), row]
    )
    row.Free()
    return result


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(counts[:-1]).tolist()]


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
