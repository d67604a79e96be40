"""What estimated times of kernels on CPUs share."""

from __future__ import annotations

EFFICIENCY = 0.7
"""What each further thread adds to the first, as threads of one core share its units."""
FURTHER_LAUNCH_US = 20.0
"""Microseconds of a launch on threads that follows another one."""


def on_threads(serial_us: float, units: int) -> float:
    """Return the microseconds on so many threads of what takes one of them `serial_us`."""
    return serial_us / (1 + EFFICIENCY * (units - 1))
