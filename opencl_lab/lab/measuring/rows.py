"""Calls in a row that are waited for once, at the end: how a call is timed on all sides alike.

A single call between two looks at a clock holds gaps that rows of calls do not have: threads that
went to sleep, a device that waits for the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MOST_CALLS = 100


def in_a_row(
    call: Callable[[], Any], calls: int, finish: Callable[[], None] | None = None
) -> tuple[float, float]:
    """Make calls one after the other; `finish` waits for what was only enqueued.

    Return the seconds until the last call has returned, and until all is done.
    """
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    returned = time.perf_counter() - begin
    if finish is not None:
        finish()
    return returned, time.perf_counter() - begin


def calls_for(row_seconds: float, call_seconds: float, least: int = 1) -> int:
    """Return how many calls of this length take long enough to be timed."""
    return int(min(max(least, row_seconds / max(call_seconds, 1e-9)), MOST_CALLS))
