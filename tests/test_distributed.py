"""Distributed operations on one to seven ranks, all checks in one job.

One rank is first, as it compiles for the others, too.

They need mpi4py and an MPI library, which the default installation does not have.
"""

import pytest
from ranks import HERE, on_ranks

from opencl_lab.lab.reference.mpi import no_mpi

pytestmark = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")

MODULES = sorted(path.stem for path in HERE.glob("distributed_*.py"))
RANKS = (1, 4, 7, *(pytest.param(few, marks=pytest.mark.full) for few in (2, 3)))
BY_MESSAGES = (3, 7)
"""Numbers of ranks that exchange as those of several nodes do."""


@pytest.mark.parametrize("ranks", RANKS)
def test_checks_on_ranks(ranks):
    memory = "off" if ranks in BY_MESSAGES else "on"
    done = on_ranks(ranks, HERE / "ranks.py", *MODULES, timeout=600, OCLAB_NODE_MEMORY=memory)
    assert done.returncode == 0, done.stdout + done.stderr
