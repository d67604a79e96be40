"""Parts of device arrays that are in one piece: copied by the driver, without arrays for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyopencl as cl

from opencl_lab.runtime.arrays import AnyArray, assign, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.results import block_of, borrowed, is_leased

Place: TypeAlias = tuple[slice, ...]
"""Where elements are in an array: a slice with both ends along each axis."""


@dataclass(frozen=True)
class Piece:
    """Consecutive bytes of a buffer."""

    block: Any
    offset: int
    nbytes: int


def piece_of(array: cl.array.Array, place: Place) -> Piece | None:
    """Return where some elements of an array are; None if they are apart."""
    if not array.flags.c_contiguous:
        return None
    offset, nbytes, whole = array.offset, array.dtype.itemsize, True
    for n, stride, run in zip(
        reversed(array.shape), reversed(array.strides), reversed(place), strict=True
    ):
        count = run.stop - run.start
        if count != 1 and not whole:
            return None
        whole = whole and count == n
        offset += run.start * stride
        nbytes *= count
    return Piece(block_of(array), offset, nbytes)


def is_buffer(array: cl.array.Array) -> bool:
    """Return whether an array is in a buffer, and not in shared virtual memory."""
    return isinstance(block_of(array), cl.MemoryObjectHolder)


def assign_part(target: AnyArray, put: Place, source: AnyArray, taken: Place, call: Call) -> None:
    """Copy some elements of `source` to a place in `target`, on the same side."""
    if any(run.start == run.stop for run in put):
        return
    if is_device_array(target):
        one, other = (
            piece_of(array, place) if is_buffer(array) else None
            for array, place in ((source, taken), (target, put))
        )
        # The library's queue is in order; other memory may be in use elsewhere.
        settled = is_leased(source) and is_leased(target)
        if settled and one is not None and other is not None:
            with call.session.exclusive(call.queue):
                cl.enqueue_copy(
                    call.queue, other.block, one.block, byte_count=one.nbytes,
                    src_offset=one.offset, dst_offset=other.offset,
                )  # fmt: skip
            return
        target, source = borrowed(target), borrowed(source)
    assign(target[put], source[taken], call)
