"""Messages between a parent and a worker: Python objects over a socket.

A message consists of the number of its frames, the length of each, and the frames: the pickle,
then the buffers of its arrays, which are not copied.
"""

from __future__ import annotations

import math
import pickle
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

Frame: TypeAlias = bytes | memoryview
Frames: TypeAlias = Sequence[Frame]
"""A pickled message."""

NUMBER = struct.Struct("<Q")
HANGUP = getattr(select, "POLLRDHUP", getattr(select, "POLLHUP", 0))
PAUSE = 0.1  # seconds between two looks where there is no poll
LEAST_SECONDS, LONGEST_SECONDS = 1e-3, 1e6  # bounds of a socket's timeout


class Ended(Exception):
    """The other end of a link was closed, or its process has ended."""


def pack(message: Any) -> Frames:
    """Pickle a message."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return [head, *(buffer.raw() for buffer in buffers)]


class Link:
    """One end of a socket between two processes.

    Deadlines are times of `time.monotonic`. After a `TimeoutError` the link cannot be used, as half
    a message may have been transferred.
    """

    def __init__(self, connection: socket.socket):
        self.connection = connection

    def write(self, frames: Frames, deadline: float = math.inf) -> None:
        """Send a message; raise `Ended` if the other end is closed, or TimeoutError."""
        lengths = [memoryview(frame).nbytes for frame in frames]
        header = struct.pack(f"<{1 + len(lengths)}Q", len(lengths), *lengths)
        with self._ending():
            for frame in (header, *frames):
                self._wait(deadline)
                self.connection.sendall(frame)

    def put(self, message: Any, deadline: float = math.inf) -> None:
        """Pickle a message and send it."""
        self.write(pack(message), deadline)

    def get(self, deadline: float = math.inf) -> Any:
        """Return the next message, in writable memory.

        It raises `Ended`, TimeoutError, or the error of a message that cannot be unpickled.
        """
        with self._ending():
            (count,) = NUMBER.unpack(self._read(NUMBER.size, deadline))
            lengths = struct.unpack(f"<{count}Q", self._read(count * NUMBER.size, deadline))
            head, *buffers = [self._read(length, deadline) for length in lengths]
        return pickle.loads(head, buffers=buffers)

    def ended(self, seconds: float = 0.0) -> bool:
        """Return whether the other end is closed, or closes within `seconds`."""
        if self.connection.fileno() < 0:  # this end is closed
            return True
        if not hasattr(select, "poll"):
            return self._is_at_end(time.monotonic() + seconds)
        poll = select.poll()
        poll.register(self.connection, HANGUP)
        return bool(poll.poll(seconds * 1e3))

    def _is_at_end(self, deadline: float) -> bool:
        """Return whether nothing more can be read; messages that nobody reads yet hide the end."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                readable, _, _ = select.select([self.connection], [], [], left)
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    return True
            except (OSError, ValueError):  # it was reset, or this end is closed
                return True
            if not left:
                return False
            time.sleep(min(left, PAUSE))

    def close(self) -> None:
        """Close this end; the other end gets `Ended`."""
        self.connection.close()

    def _read(self, length: int, deadline: float) -> bytearray:
        data = bytearray(length)
        left = memoryview(data)
        while len(left):
            self._wait(deadline)
            count = self.connection.recv_into(left)
            if not count:
                raise Ended
            left = left[count:]
        return data

    def _wait(self, deadline: float) -> None:
        """Set the timeout of the next socket operation."""
        left = max(LEAST_SECONDS, deadline - time.monotonic())
        self.connection.settimeout(left if left < LONGEST_SECONDS else None)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise
        except OSError as error:
            raise Ended from error
