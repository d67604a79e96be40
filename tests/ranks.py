"""Runs the checks of modules on ranks: ``mpiexec -n 3 python -m mpi4py ranks.py MODULE...``.

Each function ``check_...(comm, rng)`` is called on all ranks, with generators in the same state. An
error on any rank ends the job, with its traceback and exit status 1.
"""

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from opencl_lab.lab.reference.mpi import MPI_ENVIRONMENT, find_mpiexec

HERE = Path(__file__).parent


def on_ranks(ranks, *arguments, timeout=300, **environment):
    """Run a Python program on ranks and return the completed process."""
    known = {**os.environ, **MPI_ENVIRONMENT, "PYTHONPATH": f"{HERE.parent}:{HERE}"}
    line = [find_mpiexec(), "-n", str(ranks), sys.executable, "-W", "ignore", "-m", "mpi4py"]
    return subprocess.run(
        [*line, *map(str, arguments)],
        env={**known, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def main(*modules):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for module in modules:
        functions = vars(import_module(module)).items()
        checks = {name: check for name, check in functions if name.startswith("check_")}
        assert checks, f"no checks in {module}"
        for name, check in checks.items():
            begin = time.monotonic()
            check(comm, np.random.default_rng(7))
            comm.Barrier()
            if comm.rank == 0:
                print(f"{module}.{name}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
