"""Checks whether kernel times by events are plausible.

Drivers have reported times that cover a fraction of the work, and times longer than the host
measured. So event times are compared with the host's clock and with the device's measured peaks.
"""

from __future__ import annotations

from typing import Any

from opencl_lab.core.plan import Work
from opencl_lab.core.wording import plain
from opencl_lab.lab.measuring.roofline import Peaks, refusal

CLOCK_SLACK = 1.1
"""Largest plausible ratio of the events' time to the host's."""
OVERHEAD_MS = 0.5
"""Largest overhead of a launch that its event does not include, in milliseconds."""
WAIT_MS = 5.0
"""Milliseconds that a run may wait for busy processors."""
MOST_UNACCOUNTED = 10.0
"""Largest plausible ratio of the host's time, without overhead and wait, to the events'."""
LEAST_SEEN, MOST_SEEN = 0.5, 1.02
"""Range of the ratio of the event's time of one launch to the host's if the two agree."""


def implausible(
    kernel_ms: float,
    *,
    host_ms: float | None = None,
    launches: int = 1,
    work: Work | None = None,
    dtype: Any = None,
    peaks: Peaks | None = None,
) -> str | None:
    """Return why a kernel time by events cannot be true; None if it can.

    `host_ms` is the host's time of the same run, from before the first launch until all had
    finished. A time of 0 is plausible only without launches. `work`, `dtype` and `peaks` are
    those of `refusal`.
    """
    if host_ms is not None:
        some = kernel_ms > 0 or (launches == 0 and kernel_ms == 0)
        if not (some and kernel_ms <= CLOCK_SLACK * host_ms):
            return _disagreement(kernel_ms, host_ms)
    return None if work is None else refusal(work, dtype, kernel_ms, peaks)


def unaccounted(kernel_ms: float, host_ms: float, launches: int) -> str | None:
    """Return that the host waited much longer than events account for; None if it did not.

    Both times must be minima over several runs, since a single run may have waited for a busy
    host. The host's time must contain launches only, and no copies.
    """
    if host_ms - WAIT_MS - OVERHEAD_MS * (1 + launches) > MOST_UNACCOUNTED * kernel_ms:
        return _disagreement(kernel_ms, host_ms)
    return None


def agree(event: float, host: float) -> bool:
    """Return whether the event of a launch and the host that waited for it agree on its time.

    The launch should take much longer than its overhead.
    """
    return LEAST_SEEN * host <= event <= MOST_SEEN * host


def _disagreement(kernel_ms: float, host_ms: float) -> str:
    return (
        f"the events claim {plain(kernel_ms)} ms in kernels where the host's clock saw "
        f"{plain(host_ms)} ms; this timing cannot be believed"
    )
