"""Timing of back-to-back calls with one wait at the end, the same for ours and for references.

The time of a single call contains gaps that back-to-back calls do not have: threads that went to
sleep, a device that waits for the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MOST_CALLS = 100


def back_to_back(
    call: Callable[[], Any], calls: int, finish: Callable[[], None] | None = None
) -> tuple[float, float]:
    """Make calls one after the other; `finish` waits for enqueued work.

    Return the seconds until the last call has returned, and until `finish` has.
    """
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    returned = time.perf_counter() - begin
    if finish is not None:
        finish()
    return returned, time.perf_counter() - begin


def calls_for(duration: float, call: float, least: int = 1) -> int:
    """Return how many calls last about `duration`, at least `least`, at most `MOST_CALLS`."""
    return int(min(max(least, duration / max(call, 1e-9)), MOST_CALLS))
