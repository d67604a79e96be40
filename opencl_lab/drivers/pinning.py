"""Which processors are those of a rank of MPI, whose node it shares with others.

The command line needs it before anything else, so it imports very little.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

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


def share(environment: Mapping[str, str]) -> frozenset[int] | None:
    """Return the processors of one of several ranks on a node; None if it is alone there.

    Else each rank's OpenCL would start a thread for every processor. If the launcher has bound the
    ranks, these are the processors that it gave; a user may have set the number of PoCL's threads,
    and then there is no share either.
    """
    local = _local(environment)
    if sys.platform != "linux" or local is None or local[1] < 2:
        return None
    if WORKERS in environment or UNITS in environment:
        return None
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) == os.sysconf("SC_NPROCESSORS_ONLN"):
        rank, ranks = local
        each, more = divmod(len(allowed), ranks)
        begin = rank * each + min(rank, more) if each else rank % len(allowed)
        allowed = allowed[begin : begin + max(1, each + (rank < more and each > 0))]
    return frozenset(allowed)
