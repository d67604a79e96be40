"""Estimated times of small problems on the threads of a CPU, by which `Solver.side` chooses.

Each solver has its own, some in a module ``estimates``, for its `serial_us` and `parallel_us`.
Names of constants end in their units: ``_US`` in microseconds, ``_NS`` in nanoseconds. They were
measured with PoCL 3.0 on an AMD EPYC 9005 (Zen 5) at 4 GHz, whose vectors have 64 bytes.
`oclab doctor` measures how far another processor is from them, see
`opencl_lab.core.device.SmallCalls`.
"""

from __future__ import annotations

VECTOR_BYTES = 64
EFFICIENCY = 0.7
"""What each further thread adds to the first, as threads of one core share its units."""
FURTHER_LAUNCH_US = 10.0
"""A launch on threads that follows another one, for each thread that it wakes."""


def on_threads(serial_us: float, units: int) -> float:
    """Return the microseconds on `units` threads of what takes one of them `serial_us`."""
    return serial_us / (1 + EFFICIENCY * (units - 1))
