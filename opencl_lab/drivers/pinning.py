"""Which processors PoCL's threads use: a share of them for each rank of MPI, bound or not.

This runs at every ``import opencl_lab``, so it imports very little.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping

AFFINITY, OWN = "POCL_AFFINITY", "_OPENCL_LAB_POCL_AFFINITY"
"""The variable that PoCL reads, and one that tells child processes that this package set it."""
WORKERS, UNITS = "POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"
"""Variables for the number of PoCL's threads; the second since PoCL 7."""


LOCAL_RANKS = (
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),  # Open MPI
    ("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),  # MVAPICH
)
"""Variables of launchers: the number of a rank on its node, and how many are there."""


RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
"""Variables of launchers with the number of a rank in its job."""


def rank_of_job(environment: Mapping[str, str]) -> int:
    """Return the number of this rank in its job, as a launcher says; 0 without one."""
    found = (environment.get(name, "") for name in RANKS)
    return next((int(text) for text in found if text.isdecimal()), 0)


def local_rank(environment: Mapping[str, str]) -> int | None:
    """Return the number of this rank on its node, as a launcher says; None without one."""
    found = _local(environment)
    return None if found is None else found[0]


def _local(environment: Mapping[str, str]) -> tuple[int, int] | None:
    for names in LOCAL_RANKS:
        rank, ranks = (environment.get(name, "") for name in names)
        if rank.isdecimal() and ranks.isdecimal():
            return int(rank), int(ranks)
    return None


def share(environment: MutableMapping[str, str]) -> None:
    """Let each of several ranks on a node use its own processors alone, before runtimes start.

    Else each rank's OpenCL would start a thread for every processor. If the launcher has bound the
    ranks, that stays; nothing changes if the user has set the number of PoCL's threads.
    """
    local = _local(environment)
    if sys.platform != "linux" or local is None or local[1] < 2:
        return
    if WORKERS in environment or UNITS in environment:
        return
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) == os.sysconf("SC_NPROCESSORS_ONLN"):
        rank, ranks = local
        each, more = divmod(len(allowed), ranks)
        begin = rank * each + min(rank, more) if each else rank % len(allowed)
        allowed = allowed[begin : begin + max(1, each + (rank < more and each > 0))]
        os.sched_setaffinity(0, allowed)
    environment[WORKERS] = environment[UNITS] = str(len(allowed))


def pin(environment: MutableMapping[str, str]) -> None:
    """Let PoCL bind its threads, if that works and the user has not set the variable.

    A child process decides again, as its processors or its number of threads may differ.
    """
    if environment.pop(OWN, None) and environment.get(AFFINITY) == "1":
        del environment[AFFINITY]
    if AFFINITY not in environment and may_pin(environment):
        environment[AFFINITY] = environment[OWN] = "1"


def may_pin(environment: Mapping[str, str]) -> bool:
    """Return whether PoCL's threads and this process's processors allow binding.

    PoCL binds its threads to processors 0, 1, 2 and so on. If one of these does not exist, or is
    not in the container, PoCL ends the process ("PTHREAD ERROR in pocl_pthread_driver_thread()"),
    and it ignores `taskset`. It starts a thread for each processor of the machine, or as many as
    the environment says.
    """
    if sys.platform == "win32" or not hasattr(os, "sched_getaffinity"):
        return True  # PoCL binds them on Linux only
    processors = os.sysconf("SC_NPROCESSORS_ONLN")
    workers = _count(environment.get(WORKERS), processors)
    units = _count(environment.get(UNITS), 1)
    if workers is None or units is None:
        return False
    return _allowed(environment, processors) >= set(range(max(1, workers, units)))


def _count(text: str | None, missing: int) -> int | None:
    """Return the leading digits of a text as a number, as PoCL does; None if there are none."""
    if not text:
        return missing
    text = text.strip()
    digits = text[1:] if text[:1] == "+" else text
    length = next((i for i, letter in enumerate(digits) if letter not in "0123456789"), len(digits))
    return int(digits[:length]) if length else None


def _allowed(environment: Mapping[str, str], processors: int) -> set[int]:
    """Return the processors that this process may use.

    OpenMP, if told to bind threads, may have bound the calling thread to one processor. Then the
    process's processors cannot be found out, and all are assumed.
    """
    if environment.get("OMP_PROC_BIND", "false").lower() not in ("", "false") or not hasattr(
        os, "sched_getaffinity"
    ):
        return set(range(processors))
    return set(os.sched_getaffinity(0))
