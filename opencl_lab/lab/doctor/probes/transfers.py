"""Probes of copies between host and device, with pinned and pageable host memory.

The driver can copy from pinned memory directly; NumPy arrays are in pageable ("plain") memory.
Devices that work on host memory need no copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.wording import size_text
from opencl_lab.lab.doctor.probes.throughput import MIB, Candidate, race
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.measuring.poison import POISON, poisoned
from opencl_lab.symptoms.kernels import Array, check

SIZES = (16 * MIB, 64 * MIB, 256 * MIB)
MOST_COPIES = 64


class _Transfer(Candidate):
    """Back-to-back copies of an array to a buffer of the device, or back.

    They are timed by the host's clock, since a driver that copies plain memory in chunks works
    partly outside the command that its event times.
    """

    def __init__(self, session: ProbeSession, nbytes: int, pinned: bool, sends: bool):
        self.pinned, self.sends = pinned, sends
        super().__init__(session, f"{size_text(nbytes)} at once", nbytes, MOST_COPIES)

    def build(self) -> None:
        nbytes, session = int(self.amount), self.session
        flags = cl.mem_flags.READ_WRITE
        self.words = session.words(nbytes // 4)
        self.buffer = cl.Buffer(session.context, flags, nbytes)
        self.array: Array = np.empty(nbytes // 4, np.uint32)
        if self.pinned:
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE
            memory = cl.Buffer(session.context, flags | cl.mem_flags.ALLOC_HOST_PTR, nbytes)
            mapped: Any = cl.enqueue_map_buffer(
                session.queue, memory, access, 0, (nbytes // 4,), np.dtype(np.uint32)
            )
            self.array = mapped[0]
        self._poison()

    def _poison(self) -> None:
        """Write words to the source and other values to the target, so that its pages exist."""
        if self.sends:
            self.array[:] = self.words
            target = poisoned(self.words.shape, self.words.dtype)
            cl.enqueue_copy(self.session.queue, self.buffer, target)
        else:
            self.array.view(np.uint8)[:] = POISON
            cl.enqueue_copy(self.session.queue, self.buffer, self.words)

    def run(self) -> float:
        ends: tuple[Any, Any] = (self.buffer, self.array)
        target, source = ends if self.sends else ends[::-1]
        queue = self.session.queue
        queue.finish()
        copy = partial(cl.enqueue_copy, queue, target, source, is_blocking=False)
        return back_to_back(copy, self.rounds, queue.finish)[1]

    def verify(self) -> None:
        """Compare the copied data, and poison the target again."""
        arrived = self.array
        if self.sends:
            arrived = np.empty(self.words.size, np.uint32)
            cl.enqueue_copy(self.session.queue, arrived, self.buffer)
        check(arrived, self.words)
        self._poison()


def _transfers(device: Device, pinned: bool, sends: bool) -> Answers:
    """Probe the peak of copies to the device, or back to an array whose pages exist."""
    if device.unified_memory:
        detail = "the device works on the memory of the host, so nothing is copied"
        return iter([{"verdict": "no", "detail": detail}])
    limit = min(device.largest_buffer, device.global_memory // 8)

    def candidates(session: ProbeSession) -> Iterator[Candidate]:
        for nbytes in sorted({min(size, limit // 4 * 4) for size in SIZES}):
            yield _Transfer(session, nbytes, pinned, sends)

    return race(device, "B/s", candidates)


send_bytes = partial(_transfers, pinned=True, sends=True)
fetch_bytes = partial(_transfers, pinned=True, sends=False)
send_plain_bytes = partial(_transfers, pinned=False, sends=True)
fetch_plain_bytes = partial(_transfers, pinned=False, sends=False)
