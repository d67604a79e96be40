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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opencl_lab.distributed.exchange import Placement
from opencl_lab.distributed.layout import Gathered, Run, Shape, common
from opencl_lab.distributed.mpi import mpi, phases
from opencl_lab.distributed.node import node_of
from opencl_lab.runtime.arrays import AnyArray, assign, copied, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.pinned import marked
from opencl_lab.runtime.results import borrowed
from opencl_lab.runtime.session import session_of

Place = tuple[slice, ...]
"""Where elements are in a part: a slice with both ends along each axis."""


@dataclass(frozen=True)
class Move:
    """Elements that go from the part of one rank to that of another one, or to all."""

    source: int
    target: int | None  # None: all ranks, at the same place
    taken: Place
    put: Place

    @property
    def shape(self) -> Shape:
        """The shape of these elements."""
        return tuple(run.stop - run.start for run in self.taken)


def on_devices(
    comm: Any,
    local: AnyArray,
    before: Placement,
    after: Placement,
    meanwhile: Callable[[], object] = lambda: None,
) -> AnyArray | None:
    """Return this rank's part of the layout `after` on its device, from that of `before`.

    None on all ranks where `moved` returns None, or if some part has elements of cyclic blocks.
    """
    if not _is_simple(comm, before, after):
        return None
    shape, moves = after.local_shape(comm.rank), _moves(comm, before, after)
    return moved(comm, local, shape, moves, meanwhile)


def moved(
    comm: Any,
    local: AnyArray,
    shape: Shape,
    moves: Callable[[], Sequence[Move]],
    meanwhile: Callable[[], object] = lambda: None,
) -> AnyArray | None:
    """Return an array of this shape on this rank's device, to which all ranks move elements.

    None on all ranks, if they do not share memory or it has no room, or some part is not on a
    device with memory of its own. `moves` returns the moves of all ranks, the same on all. Work
    that `meanwhile` enqueues on the queue of the array runs at the same time; it may have been
    called in vain.
    """
    node = node_of(comm)
    if node is None:
        return None
    own = is_device_array(local) and not session_of(local.queue).device.unified_memory
    if not comm.allreduce(own, op=mpi().LAND):
        return None
    me = comm.rank
    with phases.communication(comm):
        every = [move for move in moves() if math.prod(move.shape)]
        sent = [move for move in every if move.source != move.target]
        # All memory is taken before the mark: what comes later may still use it on the queue.
        call = Call(local.queue)
        result = call.new_array(shape, local.dtype, local.allocator)
        source, target = borrowed(local), borrowed(result)
        down, up = dict[int, AnyArray](), dict[int, AnyArray]()
        aside = list[tuple[AnyArray, AnyArray]]()
        for number, move in enumerate(sent):
            if move.source == me:
                view = source[move.taken]
                down[number] = view if _is_dense(view) else copied(view, call)
            elif move.target in (me, None):
                view = up[number] = target[move.put]
                if not _is_dense(view):
                    up[number] = call.new_array(view.shape, view.dtype, None)
                    aside.append((view, up[number]))
        ready = marked(local.queue)
    meanwhile()
    local.queue.flush()  # else some drivers start it when the next command comes
    with phases.communication(comm):
        for move in every:
            if move.source == me and move.target in (me, None):
                assign(target[move.put], source[move.taken], call)
        parts = node.parts([move.shape for move in sent], local.dtype)
        if parts is None:
            return None
        pinned = node.pinned(local.queue)
        if not comm.allreduce(pinned is not None, op=mpi().LAND) or pinned is None:
            node.give_back()
            return None
        pinned.down([(array, parts[number]) for number, array in down.items()], ready)
        node.fence()
        pinned.up([(array, parts[number]) for number, array in up.items()], ready)
        for view, dense in aside:
            assign(view, dense, call)
    return result


def _is_simple(comm: Any, *layouts: Placement) -> bool:
    """Return whether each part is one run of indices along each axis."""
    return all(
        len(runs) <= 1
        for layout in layouts
        for rank in range(comm.size)
        for runs in layout.runs(rank)
    )


def _moves(comm: Any, before: Placement, after: Placement) -> Callable[[], list[Move]]:
    """Return what gives all moves between two layouts; what all get is moved once."""
    together = isinstance(after, Gathered) and after.root is None

    def found() -> list[Move]:
        made, ranks = list[Move](), range(comm.size)
        for source in ranks:
            for target in [None] if together else ranks:
                one, other = before.runs(source), after.runs(target or 0)
                taken, put = _place(one, other), _place(other, one)
                if taken and put:
                    made.append(Move(source, target, taken, put))
        return made

    return found


def _place(part: list[list[Run]], other: list[list[Run]]) -> Place | None:
    """Return where the elements that another part has, too, are in a part; None without any."""
    found = []
    for own, theirs in zip(part, other, strict=True):
        shared = common(own, theirs)
        if not shared:
            return None
        ((begin, end),) = shared
        found.append(slice(begin - own[0][0], end - own[0][0]))
    return tuple(found)


def _is_dense(view: AnyArray) -> bool:
    """Return whether an array is in one piece, wherever it begins in its buffer."""
    return bool(view.flags.c_contiguous)
