"""The rest before a measurement, in which the threads of whoever came before go to sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK = 0.005
"""Seconds that are looked at: what spins takes processor time then, and what sleeps takes none."""
IDLE = 0.1
"""Share of a processor, at most, that a process takes which is at rest."""
LONGEST = 0.5
"""Seconds after which somebody is taken to spin forever."""


def rest(
    clock: Callable[[], float] = time.perf_counter,
    used: Callable[[], float] = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no thread of this process is busy.

    Threads of OpenBLAS spin for 100 ms after a product, those of OpenMP for some milliseconds.
    They take the processors from whoever is measured next: a product of ours that takes turns
    with NumPy's then looks half as fast as it is.

    `clock` and `used` tell the time and the processor time of this process in seconds.
    """
    begin = clock()
    while clock() - begin < LONGEST:
        looked, before = clock(), used()
        sleep(LOOK)
        if used() - before <= IDLE * (clock() - looked):
            return
