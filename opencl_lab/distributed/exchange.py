"""Moving the parts of an array between two layouts, by one `Alltoallw`.

Each rank describes what it sends to and gets from each other one by a derived datatype of MPI, on
the local arrays themselves: nothing is packed here. The elements between two ranks are those that
the one has before and the other after; both sides list them in the order of the global array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from opencl_lab.distributed.layout import Run, Shape, common, places
from opencl_lab.distributed.mpi import mpi, phases

Array = np.ndarray[Any, Any]


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


def redistribute(comm: Any, local: Array, before: Placement, after: Placement) -> Array:
    """Return this rank's part of the layout `after`, from that of `before`.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    local : numpy.ndarray
        Dense, of the shape that `before` says.
    before, after : Layout or Gathered
        Of the same global shape; in `before` each element is on one rank.
    """
    MPI, me = mpi(), comm.rank
    local = np.ascontiguousarray(local)
    if all(before.runs(rank) == after.runs(rank) for rank in range(comm.size)):
        return local
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


def exchange_rows(comm: Any, local: Array, counts: Sequence[int]) -> tuple[Array, list[int]]:
    """Send consecutive elements to each rank; return those from all ranks, and how many from each.

    `counts` says how many of the leading axis go to each rank, in their order.
    """
    MPI = mpi()
    local = np.ascontiguousarray(local)
    got = comm.alltoall([int(count) for count in counts])
    result = np.empty((sum(got), *local.shape[1:]), local.dtype)
    row = MPI.BYTE.Create_contiguous(local.dtype.itemsize * int(np.prod(local.shape[1:])))
    row.Commit()
    sent = [int(count) for count in counts]
    with phases.communication(comm):
        comm.Alltoallv(
            [_bytes(local), (sent, _starts(sent)), row], [_bytes(result), (got, _starts(got)), row]
        )
    row.Free()
    return result, got


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(counts[:-1]).tolist()]


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
