"""Times of distributed operations on ranks that share a machine, beside one process.

    python tools/distributed_speed.py --ranks 1,4 gemm:4096 sort:100000000 fft:16777216

Each job is started anew, by ``mpiexec`` if it has several ranks, and the jobs take turns. With one
rank the call is that of `opencl_lab` on NumPy arrays, with all processors. For `sort`, a bare
``Alltoallv`` of the same bytes is timed, too; for `fft`, if pyfftw is there, a 2-D transform of as
many points with FFTW. Run it with ``OCLAB_DEVICE=cpu`` on a machine with
many cores; on one with GPUs each rank has one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

import opencl_lab as ol
from opencl_lab import distributed
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.reference.mpi import MPI_ENVIRONMENT, find_mpiexec

SAMPLES = 5


def inputs(operation: str, n: int, rows: int, rank: int) -> list[np.ndarray[Any, Any]]:
    """Return the local parts of the arguments: `rows` of a slab."""
    rng = np.random.default_rng(rank)
    if operation == "gemm":
        return [rng.random((rows, n), np.float32) for _ in range(2)]
    if operation == "conv2d":
        return [rng.random((rows, n), np.float32)]
    if operation == "fft":
        parts = rng.random((rows, 2), np.float32)
        return [parts.view(np.complex64)[:, 0]]
    return [rng.integers(-(2**31), 2**31, rows, np.int32)]


def samples_of(call: Callable[[], Any], comm: Any = None) -> list[float]:
    """Return seconds of calls in a row, each until the last rank is ready."""
    call()
    found = []
    for _ in range(SAMPLES):
        if comm is not None:
            comm.Barrier()
        begin = time.perf_counter()
        call()
        seconds = time.perf_counter() - begin
        found.append(seconds if comm is None else max(comm.allgather(seconds)))
    return found


def alone(operation: str, n: int) -> dict[str, Any]:
    """Time the call of one process."""
    arrays = inputs(operation, n, n, 0)
    device = ol.select_device()
    filters = [np.ones((5, 5), np.float32)] if operation == "conv2d" else []
    function = ol.fft.fft if operation == "fft" else getattr(ol, operation)
    return {"seconds": samples_of(lambda: function(*arrays, *filters, device=device))}


def job(operation: str, n: int) -> dict[str, Any]:
    """Time the call on this rank and all others."""
    comm = distributed.world()
    rows = len(np.array_split(np.empty(n, np.uint8), comm.size)[comm.rank])
    device = distributed.device_of(comm)
    arrays = [
        distributed.DistArray.from_local(array, comm=comm).redistribute(0)
        for array in inputs(operation, n, rows, comm.rank)
    ]
    filters = [np.ones((5, 5), np.float32)] if operation == "conv2d" else []
    home = distributed.fft if operation == "fft" else distributed

    def call() -> Any:
        return getattr(home, operation)(*arrays, *filters, device=device)

    found: dict[str, Any] = {"seconds": samples_of(call, comm)}
    distributed.phases.seconds.clear()
    distributed.phases.apart = True
    comm.Barrier()
    begin = time.perf_counter()
    call()
    found["apart"] = comm.allgather(
        {"total": time.perf_counter() - begin, **distributed.phases.seconds}
    )
    distributed.phases.apart = False
    if operation == "sort":
        each = [len(part) for part in np.array_split(np.empty(rows, np.uint8), comm.size)]
        keys, got = arrays[0].host(), comm.alltoall(each)
        result = np.empty(sum(got), keys.dtype)
        bare = samples_of(lambda: comm.Alltoallv([keys, each], [result, got]), comm)
        found["alltoallv"] = bare
    if operation == "fft" and find_spec("pyfftw"):
        found["FFTW, 2-D"] = by_fftw(comm, n)
    return found


def by_fftw(comm: Any, points: int) -> list[float]:
    """Time a 2-D transform of as many points as mpi4py-fft makes it: with FFTW and `Alltoallw`."""
    import pyfftw
    from mpi4py import MPI

    n, threads = math.isqrt(points), default_threads()
    cut = [part.size for part in np.array_split(np.empty(n, np.uint8), comm.size)]
    starts = [0, *np.cumsum(cut)[:-1].tolist()]
    mine = cut[comm.rank]
    rows = pyfftw.zeros_aligned((mine, n), np.complex64)
    columns = pyfftw.zeros_aligned((n, mine), np.complex64)
    how = {"flags": ("FFTW_MEASURE",), "threads": threads}
    along = pyfftw.FFTW(rows, rows, axes=(1,), **how)
    across = pyfftw.FFTW(columns, columns, axes=(0,), **how)
    pairs = list(zip(cut, starts, strict=True))
    kind = MPI.C_FLOAT_COMPLEX
    sent = [kind.Create_subarray(rows.shape, (mine, k), (0, at)).Commit() for k, at in pairs]
    got = [kind.Create_subarray(columns.shape, (k, mine), (at, 0)).Commit() for k, at in pairs]
    ones, zeros = [1] * comm.size, [0] * comm.size

    def call() -> None:
        along()
        comm.Alltoallw([rows, (ones, zeros), sent], [columns, (ones, zeros), got])
        across()

    return samples_of(call, comm)


def started(ranks: int, operation: str, n: int) -> dict[str, Any]:
    """Run one job and return what it says."""
    line = [sys.executable, __file__, "--job", f"{operation}:{n}"]
    if ranks > 1:
        line = [str(find_mpiexec()), "-n", str(ranks), *line]
    done = subprocess.run(
        line, env={**os.environ, **MPI_ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def main() -> None:
    """Print a line for each operation and number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", metavar="OPERATION:SIZE")
    parser.add_argument("--ranks", default="1,4")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        operation, size = options.job.split(":")
        world = distributed.world()
        answer = job(operation, int(size)) if world.size > 1 else alone(operation, int(size))
        if world.rank == 0:
            print(json.dumps(answer))
        return
    counts = [int(text) for text in options.ranks.split(",")]
    for problem in options.problems:
        operation, size = problem.split(":")
        found: dict[int, list[dict[str, Any]]] = {ranks: [] for ranks in counts}
        for _ in range(options.rounds):
            for ranks in counts:
                found[ranks].append(started(ranks, operation, int(size)))
        base = median(x for one in found[counts[0]] for x in one["seconds"])
        for ranks, answers in found.items():
            seconds = median(x for one in answers for x in one["seconds"])
            text = f"{problem:20} {ranks:3} ranks {1e3 * seconds:10.1f} ms"
            text += f"  {base / seconds:5.2f} of the speed of {counts[0]}"
            if "apart" in answers[-1]:
                apart = answers[-1]["apart"]
                total = sum(one["total"] for one in apart)
                for name in ("communication", "waiting"):
                    share = sum(one.get(name, 0) for one in apart) / total
                    text += f", {name} {share:.0%}"
                spent = 1e3 * max(one.get("communication", 0) for one in apart)
                text += f" ({spent:.1f} ms)"
            for name in {"alltoallv", "FFTW, 2-D"} & answers[-1].keys():
                bare = median(x for one in answers for x in one[name])
                text += f"; {name} {1e3 * bare:.1f} ms"
            print(text, flush=True)


if __name__ == "__main__":
    main()
