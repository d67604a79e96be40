"""The memory that a process holds while it makes calls, and how far it may grow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from opencl_lab.core.device import Device
from opencl_lab.lab.measuring.gpu_state import find_gpu
from opencl_lab.runtime.session import session_of

SLACK_BYTES = 64 << 20
"""Growth that the heaps of 8 threads may show without a leak."""
CALL_BYTES = 256
"""Growth that a call may leave: less than the smallest array or object of a driver."""
PROGRAM_BYTES = 3 << 19
"""Growth that a program may leave. PoCL 3.0 keeps 0.4 to 1.1 MB of each that it has loaded, and
3 kB of each object of a kernel."""

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Sample:
    """The memory at one moment."""

    calls: int
    programs: int
    """Number of programs that were built until then."""
    host: int | None
    """Bytes of the process in memory; None where the system does not tell."""
    device: int | None
    """Bytes in use on the device; None where the driver does not tell."""


class Meter:
    """Takes samples of this process and a device."""

    def __init__(self, device: Device):
        sides = [device, *([device.serial_side] if device.serial_side else [])]
        self._sessions = [session_of(side.queue()) for side in sides]
        self._gpu = find_gpu(device)

    def sample(self, calls: int) -> Sample:
        """Return the memory now."""
        built = sum(session.built for session in self._sessions)
        used = None if self._gpu is None else self._gpu.used_bytes()
        return Sample(calls, built, resident_bytes(), used)


def resident_bytes() -> int | None:
    """Return how many bytes of this process are in memory; None if the system does not tell."""
    with suppress(OSError, ValueError, StopIteration):
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmRSS:")))
    return None


@dataclass(frozen=True)
class Growth:
    """What a memory holds after a third of the time and at the end."""

    early: float
    late: float
    calls: int
    """Number of calls in between, and of programs that were built."""
    programs: int

    @property
    def nbytes(self) -> float:
        """The growth in bytes."""
        return self.late - self.early

    @property
    def allowed(self) -> float:
        """The growth that is no leak."""
        return SLACK_BYTES + CALL_BYTES * self.calls + PROGRAM_BYTES * self.programs

    @property
    def ok(self) -> bool:
        """Whether it is no more than allowed."""
        return self.nbytes <= self.allowed


def growth(samples: Sequence[Sample], side: str) -> Growth | None:
    """Return the growth from the end of a third of the samples to the last ones; None if not known.

    Before that caches and pools fill up. Medians of several samples are compared, since the memory
    in use varies with the calls of the moment.
    """
    ninth = max(1, len(samples) // 9)
    parts = samples[len(samples) // 3 :][:ninth], samples[-ninth:]
    early, late = ([getattr(one, side) for one in part] for part in parts)
    if not early or None in (*early, *late):
        return None
    first, last = parts[0][0], parts[1][-1]
    return Growth(
        median(early), median(late), last.calls - first.calls, last.programs - first.programs
    )
