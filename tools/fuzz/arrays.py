"""The arrays of one call, and the memory that they lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.array

from fuzz.calls import MARGIN, Data

if TYPE_CHECKING:
    from fuzz.world import World

Numbers: TypeAlias = Callable[[Any, np.dtype, np.random.Generator], np.ndarray]
"""``numbers(shape, dtype, rng)`` are random numbers."""


class Arrays:
    """The arrays of one call, and the memory that they lie in."""

    def __init__(self, world: World, numbers: Numbers | None = None):
        self.world = world
        self.numbers = numbers or _numbers
        self.host: dict[str, np.ndarray] = {}
        self.device: dict[str, Any] = {}
        self.blocks: dict[str, Any] = {}  # flat bytes, or buffers

    def make(self, item: Data, rng: np.random.Generator) -> Any:
        """Return an array of random numbers as `item` says."""
        if item.alias is not None:
            made = self._alias(item)
            if made is not None:
                return made
        view, block = _laid(item, rng, self.numbers)
        self.host[item.name], self.blocks[item.name] = view, block
        if not item.resident:
            view.flags.writeable = not item.layout.locked
            return {"list": view.tolist, "scalar": view.tolist}.get(item.wrapped, lambda: view)()
        queue = self.world.queues[0]
        buffer = cl.Buffer(
            queue.context,
            cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR,
            hostbuf=block,
        )
        self.blocks[item.name] = buffer
        made = self._on_device(item, view.shape, view.strides, _start(view, block), buffer)
        self.device[item.name] = made
        return made

    def _on_device(self, item: Data, shape: Any, strides: Any, offset: int, buffer: Any) -> Any:
        """Return a device array in a buffer."""
        own = item.layout.queue
        base = self.world.queues[own or 0]
        array = cl.array.Array(
            base,
            shape,
            np.dtype(item.dtype),
            allocator=self.world.pools[own or 0] if item.layout.pooled else None,
            data=buffer,
            offset=offset,
            strides=strides,
        )
        return array if own is not None else array.with_queue(None)

    def _alias(self, item: Data) -> Any:
        """Return an array in the memory of an earlier one, or None if it does not fit."""
        other, how = item.alias  # type: ignore[misc]
        if other not in self.host or (other in self.device) != item.resident:
            return None
        source = self.device.get(other) if item.resident else self.host[other]
        if source is None or np.dtype(item.dtype) != source.dtype:
            return None
        self.blocks[item.name] = self.blocks[other]
        shape, strides = source.shape, source.strides
        if how == "turned" and len(shape) == 2:
            shape, strides = shape[::-1], strides[::-1]
        if shape != item.shape:
            return None
        if how == "same":
            self.host[item.name] = self.host[other]
            if item.resident:
                self.device[item.name] = source
            return source
        if item.resident:
            step = source.dtype.itemsize if how == "shifted" else 0
            made = self._on_device(item, shape, strides, source.offset + step, source.base_data)
            self.device[item.name] = made
            self.host[item.name] = self.host[other]
            return made
        block = self.blocks[other]
        step = source.dtype.itemsize if how == "shifted" else 0
        start = _start(source, block) + step
        _, high = np.lib.array_utils.byte_bounds(source)
        if high + step > np.lib.array_utils.byte_bounds(block)[1]:
            return None
        made = np.ndarray(shape, source.dtype, block.data, start, strides)
        made.flags.writeable = source.flags.writeable
        self.host[item.name] = made
        return made

    def bytes(self) -> dict[str, bytes]:
        """Return all memory, by argument."""
        return {name: bytes_of(self.world, block) for name, block in self.blocks.items()}


def bytes_of(world: World, block: Any) -> bytes:
    """Return the bytes of a block of the host, or of a buffer."""
    if isinstance(block, np.ndarray):
        return block.tobytes()
    host = np.empty(block.size, np.uint8)
    cl.enqueue_copy(world.queues[0], host, block)
    return host.tobytes()


def _start(view: np.ndarray, block: np.ndarray) -> int:
    return int(view.ctypes.data - block.ctypes.data)


def _numbers(shape: Any, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers, some of them repeated."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = max(info.min, -50), min(info.max, 50)
        if rng.random() < 0.3:
            low, high = info.min, info.max
        return rng.integers(low, high, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    made = np.asarray(values).astype(dtype)
    if made.size and rng.random() < 0.1:
        made.reshape(-1)[rng.integers(made.size)] = rng.choice([np.nan, np.inf, -0.0])
    return made


def _laid(item: Data, rng: np.random.Generator, numbers: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return an array with the layout of `item`, and the block of bytes that it lies in."""
    layout = item.layout
    dtype = np.dtype(item.dtype)
    if layout.swapped and not item.resident:
        dtype = dtype.newbyteorder()
    values = numbers(item.shape, np.dtype(item.dtype), rng)
    strides, dense = [0] * len(item.shape), dtype.itemsize
    low = high = 0
    for axis in reversed(layout.order):
        size, step = item.shape[axis], layout.steps[axis]
        strides[axis] = dense * step
        reach = strides[axis] * max(size - 1, 0)
        low, high = low + min(reach, 0), high + max(reach, 0)
        dense *= max(size, 1) * max(abs(step), 1)
        if size == 1 and layout.odd_ones:
            strides[axis] = 7 * dtype.itemsize
    lead = layout.offset * dtype.itemsize
    block = rng.integers(0, 256, MARGIN * 2 + lead + high - low + dtype.itemsize, np.uint8)
    shift = 0 if item.resident else layout.shift
    # NumPy aligns blocks of the host to at least 16 bytes.
    view = np.ndarray(item.shape, dtype, block.data, lead - low + shift, tuple(strides))
    if values.size:
        view[...] = values  # repeated elements get the last one
    return view, block
