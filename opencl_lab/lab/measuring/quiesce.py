"""Waiting before a measurement until threads of earlier work have gone to sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.005
"""Interval in which the processor time is measured: threads that spin use it, those asleep none."""
IDLE_SHARE = 0.1
"""Largest share of a processor that an idle process uses."""
LONGEST_SECONDS = 0.5
"""After so long a thread is assumed to spin forever."""


def quiesce(
    clock: Callable[[], float] = time.perf_counter,
    used: Callable[[], float] = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no thread of this process is busy.

    Threads of OpenBLAS spin for 100 ms after a product, those of OpenMP for some milliseconds,
    and take processors from the next measurement: a product of ours that takes turns with
    NumPy's then looks half as fast as it is.

    `clock` and `used` return the time and the processor time of this process, in seconds.
    """
    begin = clock()
    while clock() - begin < LONGEST_SECONDS:
        polled, before = clock(), used()
        sleep(POLL_SECONDS)
        if used() - before <= IDLE_SHARE * (clock() - polled):
            return
