"""What the model of distributed calls has to know of a machine, measured by all ranks at once.

They run on each rank of a job that `scaling_measure.py` starts. `measured` times copies to memory
that the ranks share and small collective calls; `rates` times calls of `opencl_lab` on each
rank's own arrays, with its share of the processors. None of these is a distributed call, and the
sizes are not those of the runs that the model has to reproduce.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

import opencl_lab as ol
from opencl_lab import distributed
from opencl_lab.distributed.copying import copied, copy_all, in_threads
from opencl_lab.distributed.exchange import redistribute
from opencl_lab.distributed.layout import slab
from opencl_lab.distributed.mpi import mpi
from opencl_lab.distributed.node import PLACE
from opencl_lab.distributed.sort import _count
from opencl_lab.ops.sort.merging import merge_runs

SAMPLES, FEWEST = 7, 3
FASTEST = "SCALING_FASTEST"
LONG = 0.5
"""Seconds after which fewer samples do."""
CALLS = 50
"""Small collective calls in a row."""
BURST = 100
"""Messages at once."""
COPIES = tuple(1 << bits for bits in (16, 19, 22, 25))
RUNS = (256, 1024, 4096, 16384)
"""Bytes that lie together in the memory that is copied to."""
SUMS = (8, 1 << 12, 1 << 16, 1 << 20, 1 << 23)
SQUARES = (384, 768, 1536, 3072)
KEYS = (100_000, 1_000_000, 5_000_000, 40_000_000)
LENGTHS = (512, 1024, 2048, 4096)
PIXELS = (1000, 3000, 6000)
COUNTED = ("allgather", "allreduce", "bcast", "alltoall", "Barrier", "Allreduce", "Scan")
Found = dict[str, Any]
Case = tuple[float, Callable[[], Any]]
Cases = dict[str, list[Case]]


def timed(comm: Any, call: Callable[[], Any], samples: int = SAMPLES) -> tuple[float, float]:
    """Return seconds of a call that all ranks make at once, and the share by which they differ.

    Both are of the sample in the middle, or with `FASTEST` in the environment of the fastest one.
    """
    call()
    found: list[list[float]] = []
    while len(found) < samples and (len(found) < FEWEST or np.sum(np.max(found, axis=1)) < LONG):
        comm.Barrier()
        begin = time.perf_counter()
        call()
        found.append(comm.allgather(time.perf_counter() - begin))
    order = sorted(found, key=max)
    one = order[0 if os.environ.get(FASTEST) else len(order) // 2]
    mean = float(np.mean(one))
    # The last of several ranks is so many standard deviations late (Blom 1958).
    late = NormalDist().inv_cdf((comm.size - 0.375) / (comm.size + 0.25)) if comm.size > 1 else 1.0
    return mean, (max(one) / mean - 1) / late


def measured(comm: Any) -> Found:
    """Return what does not depend on an operation, the same on all ranks."""
    device = distributed.device_of(comm)
    found: Found = {"device": device.name}
    if comm.size > 1:
        near = comm.Split_type(mpi().COMM_TYPE_SHARED)
        found |= _collectives(near) | {"calls": _calls(comm, device)}
        found["exchange"] = _in_a_row(comm, _little(near))
        found["small"] = {name: timed(comm, call)[0] for name, call in small(comm, device).items()}
        if near.size > 1:
            found["copy"] = _copies(near)
        if near.size < comm.size:
            found["network"] = network(comm, near)
    found["fresh"] = [[n, timed(comm, partial(_fresh, np.ones(n, np.uint8)))[0]] for n in COPIES]
    return found


def rates(comm: Any, operation: str) -> Found:
    """Return the rates of what an operation computes, and by what share the ranks differ."""
    device, rng = distributed.device_of(comm), np.random.default_rng(comm.rank)
    found: Found = {"rates": {}, "spread": {}}
    for name, calls in OPERATIONS[operation](comm.size, rng, device).items():
        rows = [(work, *timed(comm, call)) for work, call in calls]
        found["rates"][name] = [[work, seconds] for work, seconds, _ in rows]
        found["spread"][name] = float(np.median([spread for _, _, spread in rows[-3:]]))
    return found


def _in_a_row(comm: Any, call: Callable[[], Any]) -> float:
    """Return seconds of one of several calls, which wait for each other."""

    def several() -> None:
        for _ in range(CALLS):
            call()

    return timed(comm, several, 3)[0] / CALLS


def _collectives(comm: Any) -> Found:
    """Return the latencies of what ranks agree by, and of sums."""
    sums = []
    for nbytes in SUMS:
        given = np.ones(nbytes // 8, np.int64)
        call = partial(comm.Allreduce, given, np.empty_like(given))
        once = timed(comm, call)[0] if nbytes > SUMS[1] else _in_a_row(comm, call)
        sums.append([nbytes, once])
    word = ("some arguments", (1, 2, 3))
    return {
        "barrier": _in_a_row(comm, comm.Barrier),
        "same": _in_a_row(comm, lambda: comm.allgather(word)),
        "agreed": _in_a_row(comm, lambda: comm.allreduce(1, op=mpi().MIN)),
        "allreduce": sums,
    }


def _little(comm: Any) -> Callable[[], Any]:
    """Return an exchange of one number between each two ranks."""
    before, after = (slab(axis).layout((comm.size, comm.size), comm.size) for axis in (0, 1))
    return partial(redistribute, comm, np.ones((1, comm.size)), before, after, keep=False)


def network(comm: Any, near: Any) -> Found:
    """Return what `Network` has, of messages between each rank and one of another node."""
    nodes, partner = comm.size // near.size, (comm.rank + near.size) % comm.size
    source = (comm.rank - near.size) % comm.size
    word, large = np.ones(8, np.uint8), np.ones(1 << 22, np.uint8)
    got, much = np.empty_like(word), np.empty((BURST, 1024), np.uint8)

    def burst() -> None:
        requests = [comm.Irecv(one, source) for one in much]
        requests += [comm.Isend(large[:1024], partner) for _ in range(BURST)]
        mpi().Request.Waitall(requests)

    def exchanged() -> None:
        comm.Sendrecv(large, partner, 0, other, source)

    other = np.empty_like(large)
    rows = mpi().BYTE.Create_vector(1 << 10, 1 << 10, 1 << 11).Commit()
    sparse = np.ones(1 << 21, np.uint8)
    packing = timed(comm, lambda: rows.Pack(sparse, large, 0, comm))[0]
    latency = _in_a_row(comm, lambda: comm.Sendrecv(word, partner, 0, got, source))
    found = {
        "latency": latency,
        "message": timed(comm, burst)[0] / BURST,
        "bandwidth": near.size * large.size / timed(comm, exchanged)[0],
        "pack": (1 << 20) / packing,
        "progress": 0.0,
    }
    rows.Free()
    return found if nodes > 1 else {}


def _copies(comm: Any) -> dict[str, list[list[float]]]:
    """Return by bytes that lie together the seconds of copies to memory of all ranks."""
    room = shutil.disk_usage(PLACE).free / comm.size / 2
    room = comm.allreduce(room, op=mpi().MIN)
    sizes = [nbytes for nbytes in COPIES if nbytes <= room] or [COPIES[0]]
    most, found = max(sizes), {}
    window = mpi().Win.Allocate_shared(most, 1, comm=comm)
    memory, _ = window.Shared_query((comm.rank + 1) % comm.size)
    theirs, mine = np.frombuffer(memory, np.uint8), np.ones(most, np.uint8)
    for run in RUNS:
        rows = []
        for nbytes in sizes:
            # Rows that are longer than the runs: each rank writes every second part of them.
            target = theirs[: nbytes // (2 * run) * 2 * run].reshape(-1, 2, run)[:, 0]
            source = mine[: target.size].reshape(target.shape)
            seconds = timed(comm, partial(copy_all, [(target, source)]))[0]
            rows.append([target.size, seconds])
        found[str(run)] = rows
    comm.Barrier()
    window.Free()
    return found


def _gemm(p: int, rng: Any, device: Any) -> Cases:
    sides = [(_real(rng, n // p, n), _real(rng, n, n)) for n in SQUARES if n >= p]
    return {"gemm": [(2.0 * a.size * len(b), partial(ol.gemm, a, b, device=device))
                     for a, b in sides]}  # fmt: skip


def _conv2d(p: int, rng: Any, device: Any) -> Cases:
    images, weights = [_real(rng, n // p, n) for n in PIXELS], np.ones((5, 5), np.float32)
    return {"conv2d": [(x.size, partial(ol.conv2d, x, weights, device=device)) for x in images]}


def _sort(p: int, rng: Any, device: Any) -> Cases:
    keys = [_keys(rng, n // p) for n in KEYS]
    cases: Cases = {"sort": [(x.size, partial(ol.sort, x, device=device)) for x in keys]}
    if p == 1:
        return cases
    few, tries = np.sort(_keys(rng, 1_000_000)), (15, 255 * (p - 1), 4 * 255 * (p - 1))
    cases["count"] = [
        (21 * n, partial(_count, few, rng.integers(0, 2**32, n, np.uint64), np.less, False))
        for n in tries
    ]
    cases["merge"] = []
    for x in keys:
        parts = np.array_split(x, p)
        runs, lengths = np.concatenate([np.sort(part) for part in parts]), [*map(len, parts)]
        call = partial(merge_runs, [runs], lengths, queue=device.queue())
        cases["merge"].append((x.size, call))
    return cases


def _fft(p: int, rng: Any, device: Any) -> Cases:
    def calls(shapes: Sequence[tuple[int, ...]], axis: int = -1) -> list[Case]:
        arrays = [_complex(rng, *shape) for shape in shapes]
        return [(x.size, partial(ol.fft.fft, x, axis=axis, device=device)) for x in arrays]

    cases = {"fft row": calls([(n * n // (2 * p),) for n in LENGTHS])}
    if p == 1:
        return cases
    shapes = [(n, max(1, 3 * n // (4 * p))) for n in LENGTHS]
    cases["fft columns"] = calls(shapes, 0)
    cases["fft rows"] = calls([shape[::-1] for shape in shapes])
    columns = [_complex(rng, n, max(1, n // p)) for n in LENGTHS]
    cases["twiddle"] = [(x.size, partial(_twiddled, x, np.empty_like(x))) for x in columns]
    cases["transpose"] = [(x.size, partial(_transposed, x)) for x in columns]
    return cases


OPERATIONS: dict[str, Callable[[int, Any, Any], Cases]] = {
    "gemm": _gemm, "sort": _sort, "fft": _fft, "conv2d": _conv2d,
}  # fmt: skip
"""Return by the name of a rate calls of local arrays, each with its work."""


def _real(rng: Any, *shape: int) -> Any:
    return rng.random(shape, np.float32)


def _complex(rng: Any, *shape: int) -> Any:
    return _real(rng, *shape, 2).view(np.complex64)[..., 0]


def _keys(rng: Any, n: int) -> Any:
    return rng.integers(-(2**31), 2**31, n, np.int32)


def _twiddled(source: Any, target: Any) -> None:
    """Multiply by factors of rows and of columns, in the blocks that a transform of a row has."""
    block = math.isqrt(len(source)) + 1
    within = np.ones((block, source.shape[1]), source.dtype)

    def multiply(first: int) -> None:
        part = source[first : first + block]
        np.multiply(part * within[: len(part)], within[0], out=target[first : first + block])

    in_threads(multiply, range(0, len(source), block))


def _transposed(columns: Any) -> Any:
    """Copy columns to memory of the rank, one after the other."""
    return copied(columns.T)


def _fresh(source: Any) -> Any:
    local = np.empty_like(source)
    copy_all([(local, source)])
    return local


def _calls(comm: Any, device: Any) -> dict[str, dict[str, int]]:
    """Return how often the distributed calls use each collective call of MPI."""
    counted = counting(comm)
    return {name: calls_of(counted, call) for name, call in small(counted, device).items()}


def counting(comm: Any) -> Any:
    """Return a communicator that counts its collective calls in `calls`."""
    calls: Counter[str] = Counter()

    def wrapped(name: str) -> Any:
        def call(self: Any, *given: Any, **how: Any) -> Any:
            calls[name] += 1
            return getattr(mpi().Intracomm, name)(self, *given, **how)

        return call

    kind = type("Counting", (mpi().Intracomm,), {name: wrapped(name) for name in COUNTED})
    made = kind(comm.Dup())
    made.calls = calls
    return made


def calls_of(counted: Any, call: Callable[[], Any]) -> dict[str, int]:
    """Return the collective calls of a call that has been made before."""
    call()
    counted.calls.clear()
    call()
    return dict(counted.calls)


def small(comm: Any, device: Any) -> dict[str, Callable[[], Any]]:
    """Return small distributed calls by their names, of the sizes `SMALL` of the model."""
    square = distributed.DistArray((64, 64), np.float32, None, slab(0), comm)
    square.local[...] = 1
    row = distributed.DistArray(64 * comm.size**2, np.complex64, None, slab(0), comm)
    row.local[...] = 1
    keys = distributed.DistArray(4096, np.int32, None, slab(0), comm)
    keys.local[...] = _keys(np.random.default_rng(comm.rank), keys.local.size)
    weights = np.ones((5, 5), np.float32)
    return {
        "gemm": lambda: distributed.gemm(square, square, device=device),
        "sort": lambda: distributed.sort(keys, device=device),
        "fft": lambda: distributed.fft.fft(row, device=device),
        "conv2d": lambda: distributed.conv2d(square, weights, device=device),
    }
