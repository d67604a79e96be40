"""B of a product in panels, in memory of the node: each rank packs the part that it has, once.

Else all ranks would copy their parts of B to that memory, and then each would pack all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.copying import Array, copy_all
from opencl_lab.distributed.mpi import phases
from opencl_lab.distributed.node import NodeMemory
from opencl_lab.ops.gemm.packed.tiles import Form

ALIGNED = 128
"""Bytes of which the address of panels is a multiple."""


def packed_together(node: NodeMemory, b: DistArray, form: Form) -> Array | None:
    """Return op(B) in panels, as ``gemm/packed_panels.mako`` has them; None if there is no room.

    Parts are on the host, in one run of indices along each axis. The panels are read until the next
    exchange but one.
    """
    with phases.communication(node.comm):
        made = node.parts([form.packed_shape], form.real_type)
        if made is None:
            return None
        (panels,) = made
        if panels.ctypes.data % ALIGNED:  # on all ranks, as pages are aligned
            node.give_back()
            return None
        here, part = b.local_slice(), b.host()
        if form.problem.trans_b:
            here, part = here[::-1], part.T
        copy_all(_copies(panels, part, *(run.start for run in here)))
        if part.size and here[1].stop == form.problem.n:
            panels[-1, here[0], form.problem.n - form.panel * (form.panels_n - 1) :] = 0
        node.fence()
    return panels


def _copies(panels: Array, part: Array, row: int, first: int) -> Iterator[tuple[Array, Array]]:
    """Yield where some rows and columns of B go, and these: as few pieces as can be."""
    width, (height, columns) = panels.shape[2], part.shape
    rows, end = slice(row, row + height), first + columns
    whole = range(-(-first // width), end // width)
    turned = part.strides[0] < part.strides[1]  # `copy_all` does two axes well
    if len(whole) and not turned:
        inside = part[:, whole.start * width - first : whole.stop * width - first]
        target = panels[whole.start : whole.stop, rows]
        yield target.transpose(1, 0, 2), inside.reshape(height, len(whole), width)
    for panel in range(first // width, -(-end // width)):
        if turned or panel not in whole:
            begin = panel * width
            some = slice(max(begin, first), min(begin + width, end))
            target = panels[panel, rows, some.start - begin : some.stop - begin]
            yield target, part[:, some.start - first : some.stop - first]
