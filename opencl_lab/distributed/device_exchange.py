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
from collections.abc import Callable
from itertools import product
from typing import Any

from opencl_lab.distributed.exchange import Placement
from opencl_lab.distributed.layout import Gathered, Run, Shape, common, places
from opencl_lab.distributed.mpi import mpi, phases
from opencl_lab.distributed.node import NodeMemory, node_of
from opencl_lab.runtime.arrays import AnyArray, assign, copied, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.pinned import Pair
from opencl_lab.runtime.session import session_of


def on_devices(
    comm: Any,
    local: AnyArray,
    before: Placement,
    after: Placement,
    meanwhile: Callable[[], object] = lambda: None,
) -> AnyArray | None:
    """Return this rank's part of the layout `after` on its device, from that of `before`.

    None on all ranks, if it is not `between_devices`, or some block is not one run of indices along
    each axis. Work that `meanwhile` enqueues on the queue of the array runs at the same time.
    """
    node = between_devices(comm, local)
    if node is None or not _is_simple(comm, before, after):
        return None
    ranks, me = range(comm.size), comm.rank
    together = isinstance(after, Gathered) and after.root is None
    with phases.communication(comm):
        # What all get lies in the window once.
        pairs = [(i, j) for i in ranks for j in ([i] if together else ranks) if together or i != j]
        shapes = [_size(before.runs(i), after.runs(j)) for i, j in pairs]
        parts = node.parts(shapes, local.dtype)
        if parts is None:
            return None
        pinned = node.pinned(local.queue)
        if not comm.allreduce(pinned is not None, op=mpi().LAND) or pinned is None:
            node.give_back()
            return None
        blocks = dict(zip(pairs, parts, strict=True))
        call = Call(local.queue)
        result = call.new_array(after.local_shape(me), local.dtype, local.allocator)
        down, up, aside = list[Pair](), list[Pair](), list[tuple[AnyArray, AnyArray]]()
        for (i, j), block in blocks.items():
            if not block.size:
                continue
            if i == me:
                view = local[_place(before.runs(me), after.runs(j))]
                down.append((view if _is_dense(view) else copied(view, call), block))
            elif together or j == me:
                view = result[_place(after.runs(me), before.runs(i))]
                dense = view
                if not _is_dense(view):
                    dense = call.new_array(view.shape, view.dtype, None)
                    aside.append((view, dense))
                up.append((dense, block))
        if math.prod(_size(before.runs(me), after.runs(me))):
            here = local[_place(before.runs(me), after.runs(me))]
            assign(result[_place(after.runs(me), before.runs(me))], here, call)
        pinned.mark(local.queue)
    meanwhile()
    local.queue.flush()  # else some drivers start it when the next command comes
    with phases.communication(comm):
        pinned.down(down)
        node.fence()
        pinned.up(up)
        for view, dense in aside:
            assign(view, dense, call)
    return result


def between_devices(comm: Any, local: AnyArray) -> NodeMemory | None:
    """Return what ranks share whose parts are all on devices with memory of their own, or None."""
    node = node_of(comm)
    if node is None:
        return None
    own = is_device_array(local) and not session_of(local.queue).device.unified_memory
    return node if comm.allreduce(own, op=mpi().LAND) else None


def _is_simple(comm: Any, before: Placement, after: Placement) -> bool:
    """Return whether what two ranks exchange is one run of indices along each axis."""
    parts = [[layout.runs(rank) for rank in range(comm.size)] for layout in (before, after)]
    return all(
        len(common(a, b)) <= 1
        for one, other in product(*parts)
        for a, b in zip(one, other, strict=True)
    )


def _size(one: list[list[Run]], other: list[list[Run]]) -> Shape:
    """Return the shape of what two parts have in common."""
    axes = [common(a, b) for a, b in zip(one, other, strict=True)]
    return tuple(sum(end - begin for begin, end in runs) for runs in axes)


def _place(part: list[list[Run]], other: list[list[Run]]) -> tuple[slice, ...]:
    """Return where the elements that another part has, too, are in a part."""
    found = []
    for own, theirs in zip(part, other, strict=True):
        ((begin, end),) = places(own, common(own, theirs))
        found.append(slice(begin, end))
    return tuple(found)


def _is_dense(view: AnyArray) -> bool:
    """Return whether an array is in one piece, wherever it begins in its buffer."""
    return bool(view.flags.c_contiguous)
