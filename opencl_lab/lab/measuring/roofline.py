"""The measured peaks of a device, and what they say about a measured time.

`oclab doctor` measures them (`opencl_lab.lab.doctor.probes.throughput`) and stores them
with its other findings. The roofline is the least time that a work takes at the peaks. Tables
show it as a percentage of the measured time; a result that is much faster is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Work
from opencl_lab.core.records import Positive, sound_fields
from opencl_lab.drivers.verdicts import stored, verdict_file

PREFIXES = ("", "k", "M", "G", "T", "P")
TOLERANCE = 1.25
"""Ratio to a peak above which a result is refused; peaks have measurement errors, too."""


@dataclass(frozen=True)
class Peaks:
    """The highest measured rates of a device, per second; None: not measured."""

    flops32: Positive | None = None
    flops64: Positive | None = None
    """Operations of chains of multiply-adds. Matrix units can be faster."""
    copy_bytes: Positive | None = None
    """Bytes read and written by copies within memory, in buffers much larger than any cache."""
    cached_bytes: Positive | None = None
    """The same in the fastest cache that keeps data between launches: a bound for small arrays."""
    send_bytes: Positive | None = None
    fetch_bytes: Positive | None = None
    """Bytes copied from pinned host memory to the device, and back."""
    send_plain_bytes: Positive | None = None
    fetch_plain_bytes: Positive | None = None
    """The same with pageable arrays. Devices that use the host's memory have none of the four."""
    flops16_matrix: Positive | None = None
    flops32_matrix: Positive | None = None
    flops64_matrix: Positive | None = None
    """Operations of matrix units in float16, TF32 and float64."""

    def flops(self, dtype: Any, matrix_units: bool = False) -> float | None:
        """Return the peak of arithmetic in `dtype`, real or complex; None for other types.

        With `matrix_units` it is that of the matrix units, for which real float32 means TF32.
        """
        rates = {"f4": self.flops32, "c8": self.flops32, "f8": self.flops64, "c16": self.flops64}
        if matrix_units:
            rates = {
                "f2": self.flops16_matrix,
                "f4": self.flops32_matrix,
                "f8": self.flops64_matrix,
            }
        return None if dtype is None else rates.get(np.dtype(dtype).str[1:])

    @classmethod
    def of(cls, values: Any) -> Peaks | None:
        """Read peaks from JSON values; None if there are none."""
        found = cls(**sound_fields(cls, values))
        return None if found == cls() else found


def stored_peaks(device: Device) -> Peaks | None:
    """Return the peaks that `oclab doctor` has measured on a device; None if it has not.

    Those of a serial side are the peaks of all threads.
    """
    key = device.side_of or device.key
    path = verdict_file(key)
    try:
        state = path.stat()
    except OSError:
        return None
    return _read(path, key, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _read(_path: Path, key: str, *_state: int) -> Peaks | None:
    return Peaks.of(stored(key).found)


def fraction_of_peak(
    work: Work, dtype: Any, milliseconds: float, peaks: Peaks | None
) -> float | None:
    """Return the ratio of the least time of `work` at the peaks to the kernel time.

    It is at most 1, unless small problems run from a cache (see `above_peak`). It is None where a
    time or the peaks are missing. If `dtype` is None or its peak is unknown, only the traffic
    counts.
    """
    if peaks is None or not 0 < milliseconds < math.inf:
        return None
    arithmetic = _seconds(work.flops, peaks.flops(dtype, work.matrix_units))
    least = max(arithmetic, _seconds(work.bytes, peaks.copy_bytes))
    return least * 1e3 / milliseconds or None


def above_peak(work: Work, dtype: Any, milliseconds: float, peaks: Peaks | None) -> str:
    """Return why the `fraction_of_peak` is above 1; empty if it is not."""
    share = fraction_of_peak(work, dtype, milliseconds, peaks)
    if peaks is None or share is None or share <= 1:
        return ""
    if _seconds(work.bytes, peaks.copy_bytes) * 1e3 > milliseconds:
        return "faster than memory's measured peak, as data stayed in caches"
    return "faster than the measured peak of arithmetic, as peaks are measured, too"


def share_text(share: float | None) -> str:
    """Return a fraction in percent, without the sign; ``>100`` for more than all."""
    if share is None:
        return "-"
    return ">100" if share > 1 else f"{100 * share:.3g}"


def _seconds(amount: float, peak: float | None) -> float:
    return amount / peak if peak else 0.0


def refusal(work: Work, dtype: Any, milliseconds: float, peaks: Peaks | None) -> str | None:
    """Return why a measured time cannot be true; None if the device may be that fast.

    Arithmetic is compared with the peak of multiply-adds, or of matrix units where the work uses
    them, traffic with the greater of the copy peaks. Both may be exceeded by `TOLERANCE`.
    """
    if peaks is None or not 0 < milliseconds < math.inf:
        return None
    copying = max(peaks.copy_bytes or 0.0, peaks.cached_bytes or 0.0)
    for amount, peak, unit in (
        (work.flops, peaks.flops(dtype, work.matrix_units), "FLOP/s"),
        (work.bytes, copying, "B/s"),
    ):
        rate = amount / milliseconds * 1e3
        if peak and rate > peak * TOLERANCE:
            return (
                f"claims {rate_text(rate, unit)} where the device's measured peak is "
                f"{rate_text(peak, unit)}: this timing cannot be believed (if `oclab doctor` "
                "measured while the device was busy, run it again)"
            )
    return None


def rate_text(rate: float, unit: str) -> str:
    """Return a rate in words, such as ``57 TFLOP/s``."""
    exponent = min(max(int(math.log10(rate) // 3), 0), len(PREFIXES) - 1) if rate > 0 else 0
    return f"{rate / 1000**exponent:.3g} {PREFIXES[exponent]}{unit}"
