"""Python objects on a stream between two processes of ours.

A message is a count of frames, then each frame after its length: the pickle, then
the memory of its arrays, so that large ones are not copied.
"""

from __future__ import annotations

import pickle
import struct
from io import BufferedRWPair
from typing import IO, Any, TypeAlias

__all__ = ["Stream", "receive", "send"]

Stream: TypeAlias = IO[bytes] | BufferedRWPair
"""What messages go through."""

LENGTH = struct.Struct("<Q")


def send(stream: Stream, message: Any) -> None:
    """Write a message and flush it.

    Raises
    ------
    OSError
        If nobody reads it.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    frames = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    stream.write(LENGTH.pack(len(frames)))
    for frame in frames:
        stream.write(LENGTH.pack(frame.nbytes))
        stream.write(frame)
    stream.flush()


def _read(stream: Stream, length: int) -> bytearray:
    """Read exactly `length` bytes; they are writable, and so are arrays made of them."""
    data = bytearray(length)
    view, done = memoryview(data), 0
    while done < length:
        count = stream.readinto(view[done:])  # type: ignore[union-attr]
        if not count:
            raise EOFError("the stream ended within a message")
        done += count
    return data


def receive(stream: Stream) -> Any:
    """Read a message, in writable memory.

    Raises
    ------
    EOFError, OSError
        If the stream ends or fails before its end.
    """

    def number() -> int:
        return int(LENGTH.unpack(_read(stream, LENGTH.size))[0])

    head, *buffers = [_read(stream, number()) for _ in range(number())]
    return pickle.loads(head, buffers=buffers)
