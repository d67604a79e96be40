"""When the time of kernels by their events cannot be believed: what that means to all who measure.

Drivers have reported times of a fraction of the work, and of more than the host saw. So events are
held against the clock of the host, and against the measured peaks of the device.
"""

from __future__ import annotations

from typing import Any

from opencl_lab.core.plan import Work
from opencl_lab.lab.measuring.roofline import Peaks, refusal

CLOCK_SLACK = 1.1
"""Events may claim so many times what the host's clock saw."""
OVERHEAD_MS = 0.5
"""Milliseconds of a launch, at most, that its event does not see."""
WAIT_MS = 5.0
"""Milliseconds that every run may wait for processors that others keep busy."""
UNSEEN = 10.0
"""Beyond that, the host's clock may show so many times what the events claim."""
LEAST_SEEN, MOST_SEEN = 0.5, 1.02
"""The share of the host's time that the event of a single launch shows where the two agree."""


def doubt(
    kernel_ms: float,
    *,
    host_ms: float | None = None,
    launches: int = 1,
    work: Work | None = None,
    dtype: Any = None,
    peaks: Peaks | None = None,
) -> str | None:
    """Return why the time that events claim for kernels cannot be true; None if it can.

    `host_ms` is what the host's clock saw of the same run, from before the first launch until all
    was done; only no launch at all may take no time. `work`, `dtype` and `peaks` are those of
    `refusal`.
    """
    if host_ms is not None:
        some = kernel_ms > 0 or (launches == 0 and kernel_ms == 0)
        if not (some and kernel_ms <= CLOCK_SLACK * host_ms):
            return _disagreement(kernel_ms, host_ms)
    return None if work is None else refusal(work, dtype, kernel_ms, peaks)


def unseen(kernel_ms: float, host_ms: float, launches: int) -> str | None:
    """Return that the host waited much longer than the events account for; None if it did not.

    Both times are the least of several runs: a single one may have waited for the host, all did
    not. Nothing but launches may be in the host's time, no copies for example.
    """
    if host_ms - WAIT_MS - OVERHEAD_MS * (1 + launches) > UNSEEN * kernel_ms:
        return _disagreement(kernel_ms, host_ms)
    return None


def agree(event: float, host: float) -> bool:
    """Return whether the event of a launch and the host that waited for it show the same time.

    The launch should be long against the overhead of one.
    """
    return LEAST_SEEN * host <= event <= MOST_SEEN * host


def _disagreement(kernel_ms: float, host_ms: float) -> str:
    return (
        f"the events claim {kernel_ms:.3g} ms in kernels where the host's clock saw "
        f"{host_ms:.3g} ms; this timing cannot be believed"
    )
