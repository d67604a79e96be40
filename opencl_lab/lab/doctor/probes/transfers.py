"""Probes of copies between host and device, with pinned and pageable host memory.

The driver can copy from pinned memory directly; NumPy arrays are in pageable ("plain") memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probes.throughput import MIB, Candidate, race
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.selftest.kernels import Array, check

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
        nbytes, context, queue = int(self.amount), self.session.context, self.session.queue
        flags = cl.mem_flags.READ_WRITE
        self.words = self.session.words(nbytes // 4)
        self.buffer = cl.Buffer(context, flags, nbytes)
        self.array: Array = np.empty_like(self.words)
        if self.pinned:
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE
            memory = cl.Buffer(context, flags | cl.mem_flags.ALLOC_HOST_PTR, nbytes)
            mapped: Any = cl.enqueue_map_buffer(
                queue, memory, access, 0, self.words.shape, self.words.dtype
            )
            self.array = mapped[0]
        self._start_again()

    def _start_again(self) -> None:
        """Write words to the source and others to the target, so that its pages exist."""
        sent, kept = (self.words, ~self.words) if self.sends else (~self.words, self.words)
        self.array[:] = sent
        cl.enqueue_copy(self.session.queue, self.buffer, kept)

    def run(self) -> float:
        ends: tuple[Any, Any] = (self.buffer, self.array)
        queue = self.session.queue
        queue.finish()
        copy = partial(
            cl.enqueue_copy, queue, *(ends if self.sends else ends[::-1]), is_blocking=False
        )
        return back_to_back(copy, self.rounds, queue.finish)[1]

    def verify(self) -> None:
        """Compare what arrived, and start again."""
        arrived = self.array
        if self.sends:
            arrived = np.empty_like(self.words)
            cl.enqueue_copy(self.session.queue, arrived, self.buffer)
        check(arrived, self.words)
        self._start_again()


def _transfers(device: Device, pinned: bool, sends: bool) -> Answers:
    """Probe the peak of copies to the device, or back to an array whose pages exist."""
    if device.unified_memory:
        detail = "the device works on the memory of the host, so nothing is copied"
        return iter([Verdict("no", detail)])
    limit = min(device.largest_buffer, device.global_memory // 8) // 4 * 4
    sizes = sorted({min(size, limit) for size in SIZES})
    return race(device, "B/s", lambda s: (_Transfer(s, size, pinned, sends) for size in sizes))


send_bytes = partial(_transfers, pinned=True, sends=True)
fetch_bytes = partial(_transfers, pinned=True, sends=False)
send_plain_bytes = partial(_transfers, pinned=False, sends=True)
fetch_plain_bytes = partial(_transfers, pinned=False, sends=False)
