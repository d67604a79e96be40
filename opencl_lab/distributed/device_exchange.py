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

from opencl_lab.core.device import Device
from opencl_lab.distributed.exchange import Placement
from opencl_lab.distributed.layout import Gathered, Run, Shape, common, places
from opencl_lab.distributed.mpi import everywhere, phases
from opencl_lab.distributed.node import NodeMemory, node_of
from opencl_lab.runtime.arrays import AnyArray, assign, copied, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.exchange import to_device
from opencl_lab.runtime.pieces import Piece, Place, assign_part, is_buffer, piece_of
from opencl_lab.runtime.pinned import marked
from opencl_lab.runtime.results import borrowed
from opencl_lab.runtime.session import session_of

LEAST_PLACED = 1 << 22
"""Bytes of all ranks from which parts of the host are exchanged between devices."""
ROOM = 4
"""Parts must fit so many times in a device: themselves, what is exchanged, results, scratch."""


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

    None on all ranks where `moved` returns None, or if what two ranks exchange is not one run of
    indices along each axis.
    """
    shape = after.local_shape(comm.rank)
    return moved(comm, local, shape, lambda: _moves(comm, before, after), meanwhile)


def moved(
    comm: Any,
    local: AnyArray,
    shape: Shape,
    moves: Callable[[], Sequence[Move] | None],
    meanwhile: Callable[[], object] = lambda: None,
) -> AnyArray | None:
    """Return an array of this shape on this rank's device, to which all ranks move elements.

    None on all ranks, if they are not `between_devices`, if the node has no room for a window or it
    cannot be pinned, or if `moves` returns None; else that returns the moves of all ranks, the same
    on all. Work that `meanwhile` enqueues on the queue of the array runs at the same time; it may
    have been called though None is returned.
    """
    node = between_devices(comm, local)
    every = None if node is None else moves()
    if node is None or every is None:
        return None
    me = comm.rank
    with phases.communication(comm):
        every = [move for move in every if math.prod(move.shape)]
        sent = [move for move in every if move.source != move.target]
        # All memory is taken before the mark: what comes later may still use it on the queue.
        call = Call(local.queue)
        result = call.new_array(shape, local.dtype, local.allocator)
        packed = dict[int, AnyArray]()
        down, up = dict[int, Piece](), dict[int, Piece]()
        for number, move in enumerate(sent):
            if move.source == me:
                side, array, place = down, local, move.taken
            elif move.target in (me, None):
                side, array, place = up, result, move.put
            else:
                continue
            piece = piece_of(array, place)
            if piece is None:
                if side is down:
                    packed[number] = copied(borrowed(local)[place], call)
                else:
                    packed[number] = call.new_array(move.shape, local.dtype, None)
                piece = piece_of(packed[number], tuple(slice(0, n) for n in move.shape))
            assert piece is not None
            side[number] = piece
        ready = marked(local)
    meanwhile()
    local.queue.flush()  # else some drivers start it when the next command comes
    with phases.communication(comm):
        for move in every:
            if move.source == me and move.target in (me, None):
                assign_part(result, move.put, local, move.taken, call)
        parts = node.parts([move.shape for move in sent], local.dtype)
        if parts is None:
            return None
        pinned = node.pinned(local.queue)
        if not everywhere(comm, pinned is not None) or pinned is None:
            node.give_back()
            return None
        pinned.down([(piece, parts[number]) for number, piece in down.items()], ready)
        node.fence()
        pinned.up([(piece, parts[number]) for number, piece in up.items()], ready)
        for number in packed.keys() & up.keys():
            assign(borrowed(result)[sent[number].put], packed[number], call)
    return result


def between_devices(comm: Any, local: AnyArray) -> NodeMemory | None:
    """Return what ranks share whose parts are all on devices with memory of their own, or None."""
    node = node_of(comm)
    if node is None:
        return None
    own = (
        is_device_array(local)
        and not session_of(local.queue).device.unified_memory
        and (not local.size or is_buffer(local))
    )
    return node if everywhere(comm, own) else None


def placed(
    comm: Any, arrays: Sequence[AnyArray], device: Device | None, more: int = 0
) -> list[AnyArray] | None:
    """Return parts of the host on the device of this rank, where the ranks can exchange them.

    None on all ranks, if there is no such way or some parts are on devices already; if all parts
    together have less than `LEAST_PLACED` bytes, or a device lacks the room for what a rank has
    there, and for `more` bytes.
    """
    if node_of(comm) is None:
        return None
    simple = all(not is_device_array(x) and x.dtype.kind in "biufc" for x in arrays)
    queue = device.queue() if simple and device is not None else None
    nbytes = sum(array.nbytes for array in arrays)
    fits = ROOM * nbytes + more <= room_of(
        comm, None if queue is None else session_of(queue).device
    )
    if not everywhere(comm, fits) or comm.allreduce(nbytes) < LEAST_PLACED:
        return None
    return [to_device(array, queue=queue) for array in arrays]


def room_of(comm: Any, device: Device | None) -> int:
    """Return the bytes of a device for this rank: ranks of the node share it. All ranks call it.

    -1 without a device that has memory of its own.
    """
    place = None
    if device is not None and not device.unified_memory:
        place = device.platform_index, device.device_index
    places = comm.allgather(place)
    return -1 if device is None or place is None else device.global_memory // places.count(place)


def _moves(comm: Any, before: Placement, after: Placement) -> list[Move] | None:
    """Return all moves between two layouts; what all get is moved once."""
    together = isinstance(after, Gathered) and after.root is None
    made, ranks = list[Move](), range(comm.size)
    for source in ranks:
        for target in [None] if together else ranks:
            one, other = before.runs(source), after.runs(target or 0)
            shared = [common(a, b) for a, b in zip(one, other, strict=True)]
            if not all(shared):
                continue
            if any(len(runs) > 1 for runs in shared):
                return None
            made.append(Move(source, target, _place(one, shared), _place(other, shared)))
    return made


def _place(part: list[list[Run]], shared: list[list[Run]]) -> Place:
    """Return where the elements are in a part that another one has, too."""
    runs = [places(own, both)[0] for own, both in zip(part, shared, strict=True)]
    return tuple(slice(*run) for run in runs)
