"""A 2-D transform over ranks by opencl_lab and by mpi4py-fft with FFTW, of the same array.

    pip install '.[mpi]' mpi4py-fft        # which needs FFTW with its headers: libfftw3-dev
    mpiexec -n 2 python -m mpi4py docs/examples/beside_mpi4py_fft.py 1024

Both begin with rows on each rank and end with columns, so that one exchange is enough. They take
turns; rank 0 prints the least time of each, from a barrier until the last rank is ready.
"""

import sys
import time

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

from opencl_lab import distributed as od

ROUNDS = 5


def seconds_of(call, comm):
    """Return the result of a call and the time of the slowest rank."""
    comm.Barrier()
    begin = time.perf_counter()
    found = call()
    return found, comm.allreduce(time.perf_counter() - begin, op=MPI.MAX)


def main(n):
    """Transform n x n complex numbers both ways; raise if the results differ."""
    comm = MPI.COMM_WORLD
    plan = PFFT(comm, (n, n), axes=(0, 1), dtype=np.complex64, grid=(-1, 1))
    theirs = newDistArray(plan, forward_output=False)
    right = newDistArray(plan, forward_output=True)
    rng = np.random.default_rng(comm.rank)
    parts = rng.standard_normal((*theirs.shape, 2), np.float32)
    theirs[...] = parts.view(np.complex64)[..., 0]
    assert theirs.shape[1] == n, "each rank has whole rows"
    x = od.DistArray.from_local(np.array(theirs))

    def by_mpi4py_fft():
        return plan.forward(theirs, right, normalize=False)

    def by_opencl_lab():
        return od.fft.fft2(x, distribution=1)

    times = {"mpi4py-fft": [], "opencl_lab": []}
    for _ in range(ROUNDS + 1):  # the first one compiles kernels
        _, spent = seconds_of(by_mpi4py_fft, comm)
        times["mpi4py-fft"].append(spent)
        found, spent = seconds_of(by_opencl_lab, comm)
        times["opencl_lab"].append(spent)
    assert found.local_slice() == tuple(right.local_slice()), "each rank has the same columns"
    error = np.abs(found.local - right).max() / np.abs(right).max()
    error = comm.allreduce(float(error), op=MPI.MAX)
    assert error < 1e-5, error
    if comm.rank == 0:
        print(f"{n} x {n} on {comm.size} ranks: the largest difference is {error:.1e}")
        for name, spent in times.items():
            print(f"{name} {1e3 * min(spent[1:]):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
