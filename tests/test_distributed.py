"""Distributed operations on one to seven ranks, all checks of a module in one job.

They need mpi4py and an MPI library, which the default installation does not have.
"""

import pytest
from ranks import HERE, on_ranks

from opencl_lab.lab.reference.mpi import no_mpi

pytestmark = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")

MODULES = sorted(path.stem for path in HERE.glob("distributed_*.py"))
RANKS = (1, 2, 3, 4, 7)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("module", MODULES)
def test_checks_on_ranks(module, ranks):
    done = on_ranks(ranks, HERE / "ranks.py", module)
    assert done.returncode == 0, done.stdout + done.stderr
