"""Whether PoCL may bind its workers to processors.

This runs at every ``import opencl_lab``, so that it imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

AFFINITY, OWN = "POCL_AFFINITY", "_OPENCL_LAB_POCL_AFFINITY"
"""What PoCL reads, and what says that this package has set it, to child processes too."""
WORKERS, UNITS = "POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"
"""How many workers PoCL is told to start; the second since PoCL 7."""


def pin(environment: MutableMapping[str, str]) -> None:
    """Let PoCL bind its workers, if it may and the user has not said whether it shall.

    A child process decides again: it may run on other processors, or start other workers.
    """
    if environment.pop(OWN, None) and environment.get(AFFINITY) == "1":
        del environment[AFFINITY]
    if AFFINITY not in environment and may_pin(environment):
        environment[AFFINITY] = environment[OWN] = "1"


def may_pin(environment: Mapping[str, str]) -> bool:
    """Return whether each worker finds a processor of its own that this process may use.

    PoCL binds its workers to the processors 0, 1, 2 and so on, whichever these are: where one is
    not there, or not in the container, it ends the process ("PTHREAD ERROR in
    pocl_pthread_driver_thread()"), and it does not heed `taskset`. It starts a worker for each
    processor of the machine, or as many as the environment says.
    """
    if not hasattr(os, "sched_getaffinity"):
        return True  # PoCL binds them on Linux only
    processors = os.sysconf("SC_NPROCESSORS_ONLN")
    workers = _count(environment.get(WORKERS), processors)
    units = _count(environment.get(UNITS), 1)
    if workers is None or units is None:
        return False
    return _allowed(environment, processors) >= set(range(max(1, workers, units)))


def _count(text: str | None, missing: int) -> int | None:
    """Return a number as PoCL reads it, up to what is no digit; None if there is none."""
    if not text:
        return missing
    text = text.strip()
    digits = text[1:] if text[:1] == "+" else text
    length = next((i for i, letter in enumerate(digits) if letter not in "0123456789"), len(digits))
    return int(digits[:length]) if length else None


def _allowed(environment: Mapping[str, str], processors: int) -> set[int]:
    """Return the processors that some thread of this process may use.

    OpenMP may have bound the calling thread to one of them, where it is told to bind threads: what
    the process may use is not to be seen then, and taken to be all.
    """
    if environment.get("OMP_PROC_BIND", "false").lower() not in ("", "false"):
        return set(range(processors))
    return set(os.sched_getaffinity(0))
