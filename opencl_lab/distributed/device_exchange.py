"""Moving parts on devices between two layouts, through a window of the node that is pinned.

```text
 device of rank 0 --> block 0 to 1 --> device of rank 1      all blocks down, a fence, all blocks
 device of rank 1 --> block 1 to 0 --> device of rank 0      up; what stays does not leave a device
```

Every rank pins the window that all share, once, so that its device reads what another device has
written there, and the host copies nothing. A block lies in the window as one piece; elements that
are apart in a part are packed and unpacked on the devices.
"""

from __future__ import annotations

import math
from typing import Any

import pyopencl as cl

from opencl_lab.distributed.exchange import Placement
from opencl_lab.distributed.layout import Gathered, Run, Shape, common
from opencl_lab.distributed.mpi import mpi, phases
from opencl_lab.distributed.node import node_of
from opencl_lab.runtime.arrays import AnyArray, assign, copied, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.results import block_of
from opencl_lab.runtime.session import session_of


def on_devices(comm: Any, local: AnyArray, before: Placement, after: Placement) -> AnyArray | None:
    """Return this rank's part of the layout `after` on its device, from that of `before`.

    None on all ranks, if they do not share memory, or some part is not on a device with memory of
    its own, or has elements of cyclic blocks.
    """
    node = node_of(comm)
    if node is None:
        return None
    own = is_device_array(local) and not session_of(local.queue).device.unified_memory
    if not comm.allreduce(own and _is_simple(comm, before, after), op=mpi().LAND):
        return None
    ranks, me = range(comm.size), comm.rank
    together = isinstance(after, Gathered) and after.root is None
    with phases.communication(comm):
        # What all get lies in the window once.
        pairs = [(i, j) for i in ranks for j in ([i] if together else ranks) if together or i != j]
        shapes = [_size(before.runs(i), after.runs(j)) for i, j in pairs]
        parts = node.parts(shapes, local.dtype)
        if parts is None or not comm.allreduce(node.pinned(local.queue), op=mpi().LAND):
            return None
        blocks = dict(zip(pairs, parts, strict=True))
        call = Call(local.queue)
        sent = [
            (local[_place(before.runs(me), after.runs(j))], blocks[i, j])
            for i, j in pairs
            if i == me and blocks[i, j].size
        ]
        _copy_down(sent, call)
        node.fence()
        result = call.new_array(after.local_shape(me), local.dtype, local.allocator)
        got = [
            (result[_place(after.runs(me), before.runs(i))], blocks[i, j])
            for i, j in pairs
            if i != me and (together or j == me) and blocks[i, j].size
        ]
        if math.prod(_size(before.runs(me), after.runs(me))):
            here = local[_place(before.runs(me), after.runs(me))]
            assign(result[_place(after.runs(me), before.runs(me))], here, call)
        _copy_up(got, call)
    return result


def _is_simple(comm: Any, *layouts: Placement) -> bool:
    """Return whether each part is one run of indices along each axis."""
    return all(
        len(runs) <= 1
        for layout in layouts
        for rank in range(comm.size)
        for runs in layout.runs(rank)
    )


def _size(one: list[list[Run]], other: list[list[Run]]) -> Shape:
    """Return the shape of what two parts have in common."""
    axes = [common(a, b) for a, b in zip(one, other, strict=True)]
    return tuple(sum(end - begin for begin, end in runs) for runs in axes)


def _place(part: list[list[Run]], other: list[list[Run]]) -> tuple[slice, ...]:
    """Return where the elements that another part has, too, are in a part."""
    found = []
    for own, theirs in zip(part, other, strict=True):
        ((begin, end),) = common(own, theirs)
        found.append(slice(begin - own[0][0], end - own[0][0]))
    return tuple(found)


def _copy_down(blocks: list[tuple[AnyArray, Any]], call: Call) -> None:
    """Copy views of a device array to blocks of the window, and wait."""
    queue, kept = call.queue, []
    dense = [(view if _is_dense(view) else copied(view, call), block) for view, block in blocks]
    with session_of(queue).exclusive(queue):
        for array, block in dense:
            how: dict[str, Any] = {"src_offset": array.offset, "wait_for": array.events}
            kept.append(cl.enqueue_copy(queue, block, block_of(array), is_blocking=False, **how))
            queue.flush()
        queue.finish()  # before an event is deleted, which would wait with Python's lock held


def _copy_up(blocks: list[tuple[AnyArray, Any]], call: Call) -> None:
    """Copy blocks of the window to views of a device array, and wait."""
    queue, kept = call.queue, []
    targets = [
        view if _is_dense(view) else call.new_array(view.shape, view.dtype, None)
        for view, _ in blocks
    ]
    with session_of(queue).exclusive(queue):
        for target, (_, block) in zip(targets, blocks, strict=True):
            buffer, begin = block_of(target), target.offset
            kept.append(cl.enqueue_copy(queue, buffer, block, dst_offset=begin, is_blocking=False))
            queue.flush()
    for target, (view, _) in zip(targets, blocks, strict=True):
        if target is not view:
            assign(view, target, call)
    with session_of(queue).exclusive(queue):
        queue.finish()


def _is_dense(view: AnyArray) -> bool:
    """Return whether an array is in one piece, wherever it begins in its buffer."""
    return bool(view.flags.c_contiguous)
