"""Whether PoCL may bind its workers to processors.

This runs at every ``import opencl_lab``, so that it imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["may_pin"]

COUNTS = ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT")
"""How many workers PoCL is told to start; the second since PoCL 7."""


def may_pin(environment: Mapping[str, str]) -> bool:
    """Return whether each worker finds a processor of its own that this process may use.

    PoCL binds its workers to the processors 0, 1, 2 and so on, whichever these are: where one is
    not there, or not in the container, it ends the process ("PTHREAD ERROR in
    pocl_pthread_driver_thread()"), and it does not heed `taskset`. It starts a worker for each
    processor of the machine, or as many as the environment says.
    """
    if not hasattr(os, "sched_getaffinity"):
        return True  # PoCL binds them on Linux only
    given = [int(text) for text in map(environment.get, COUNTS) if text and text.isdecimal()]
    workers = max(1, *given) if given else os.cpu_count() or 1
    return os.sched_getaffinity(0).issuperset(range(workers))
