"""A distributed call in which one rank fails: ``faulty_ranks.py OPERATION FAULT [K]``.

With K, the fault comes at the K-th call that this rank makes of its communicator.
"""

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

import opencl_lab as ol
from opencl_lab import distributed as od

SICK = 1
COLLECTIVES = ("allgather", "allreduce", "bcast", "alltoall", "Allgather", "Allreduce", "Alltoallv",
               "Alltoallw", "Scan", "Barrier", "Ibcast", "Reduce_scatter", "Irecv",
               "Isend")  # fmt: skip


def fail(fault):
    if fault == "device":
        raise ol.LaunchError("the device is lost, as planted")
    if fault == "memory":
        raise MemoryError("no memory, as planted")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


class FaultyComm(MPI.Intracomm):
    """A communicator, one of whose collective calls fails."""

    left, fault, made = 0, "", 0


def _counted(name):
    def call(self, *given, **how):
        FaultyComm.made += 1
        if MPI.COMM_WORLD.rank == SICK and FaultyComm.made == FaultyComm.left:
            fail(FaultyComm.fault)
        return getattr(MPI.Intracomm, name)(self, *given, **how)

    return call


for name in COLLECTIVES:
    setattr(FaultyComm, name, _counted(name))


def _faulty_too(name):
    """Return a method whose new communicator may fail, too."""
    return lambda self, *given: FaultyComm(getattr(MPI.Intracomm, name)(self, *given))


for name in ("Split", "Dup"):
    setattr(FaultyComm, name, _faulty_too(name))


def main(operation, fault, k="0"):
    FaultyComm.left, FaultyComm.fault = int(k), fault
    comm = FaultyComm(MPI.COMM_WORLD.Dup())
    x, keys = (np.random.default_rng(5).random(n, np.float32) for n in ((40, 40), 10**5))
    od.sort_together.LEAST = 0
    make = od.DistArray.from_global
    calls = {
        "gemm": lambda: od.gemm(make(x, None, comm), make(x, None, comm)),
        "sort": lambda: od.sort(make(keys, None, comm)),
        "fft": lambda: od.fft.fftn(make(x, None, comm)),
        "conv2d": lambda: od.conv2d(make(x, None, comm), np.ones((3, 3), np.float32)),
        "shape": lambda: od.DistArray((4, 4), float, np.ones((9, comm.rank)), None, comm),
    }
    if operation == "shape":
        try:
            calls[operation]()
        except ol.InvalidProblem as error:
            print(f"on {comm.rank}: {error}", flush=True)
        return
    calls[operation]()
    if comm.rank == SICK:
        print("calls:", FaultyComm.made, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
