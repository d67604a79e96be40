"""Measure sorts of arrays that are larger than a device's memory, by a limit that is not its own.

    python tools/gpu_out_of_core.py [--device SPEC] [--megabytes 4000] [--limits 500,2000]
                                    [--dtypes int32,float64] [--file FOLDER]

For each limit in MB the array of the host is sorted in parts, and also at once where it fits. The
stages overlap: the total should be near the longest of them, and twice the array goes each way.
``read`` is from the host's array to the device and ``write`` the way back, with copies between
pinned memory and arrays; ``plain`` is how long the same bytes take by these copies alone, one way
after the other and with nothing else going on. Each result is compared with NumPy's. With
``--file`` the array lies in a file of that folder, and so do the runs and the result.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyopencl as cl

import opencl_lab as ol
from opencl_lab.device import Device
from opencl_lab.operations.sort.file import sort_file
from opencl_lab.operations.sort.out_of_core import InMemory, sort_parts
from opencl_lab.operations.sort.part_sizes import parts_of
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.runtime.session import default_queue, session_of

ROUNDS = 3


def random_keys(dtype: np.dtype, nbytes: int) -> np.ndarray:
    """Return keys of any bits but NaN, of which there would be several kinds."""
    keys = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8).view(dtype)
    if dtype.kind == "f":
        keys[np.isnan(keys)] = 0
    return keys


def plain_seconds(device: Device, keys: np.ndarray, target: np.ndarray, part: int) -> float:
    """Return how long copies of all keys to the device and back take, part by part, twice."""
    if device.unified_memory:
        return 0.0
    queue = default_queue(device)
    staged = session_of(queue).staging
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, part)
    source, back = keys.view(np.uint8), target.view(np.uint8)
    begin = time.perf_counter()
    for at in range(0, keys.nbytes, part):
        staged.send(queue, buffer, source[at : at + part])
    queue.finish()
    for at in range(0, keys.nbytes, part):
        staged.fetch(queue, back[at : at + part], buffer)
    return 2 * (time.perf_counter() - begin)


def tell(name: str, nbytes: int, total: float, stages: dict[str, float], plain: float) -> None:
    """Print a row."""
    longest = max(stages[stage] for stage in ("read", "work", "write"))
    values = (total, nbytes / total * 1e-9, *(stages[k] for k in ("read", "work", "write")))
    print(
        f"{name:>28}" + "".join(f"{value:9.3f}" for value in values) + f"{stages['kernels']:9.3f}"
        f"{plain:9.3f}{total / longest:10.2f}",
        flush=True,
    )


def in_memory(device: Device, keys: np.ndarray, right: np.ndarray, limits: list[float]) -> None:
    """Print rows for an array of the host."""
    result, aside = np.zeros_like(keys), np.zeros_like(keys)  # with pages
    result[:], aside[:] = 1, 1
    problem = SortProblem(keys.size, keys.dtype)
    for limit in limits:
        parts = parts_of(problem, device, limit=limit)
        plain = min(plain_seconds(device, keys, aside, parts.nbytes) for _ in range(ROUNDS))
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            stages = sort_parts(
                parts,
                InMemory(keys),
                InMemory(result),
                lambda: nullcontext(InMemory(aside)),
                device=device,
            )
            total = time.perf_counter() - begin - stages["build"]
            name = f"{keys.dtype} {limit / 1e6:.0f} MB, {parts.runs} runs"
            tell(name, keys.nbytes, total, stages, plain)
        if not np.array_equal(result, right):
            raise SystemExit("a result is wrong")
    try:
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            ol.sort(keys, out=result, queue=default_queue(device))
            total = time.perf_counter() - begin
        print(f"{'at once':>28}{total:9.3f}{keys.nbytes / total * 1e-9:9.3f}")
    except ol.OclabError as error:
        print(f"{'at once':>28} {error.sentence}")


def in_file(device: Device, folder: str, keys: np.ndarray, right: np.ndarray, limit: float) -> None:
    """Print rows for a file."""
    with tempfile.TemporaryDirectory(prefix="oclab-", dir=folder) as name:
        given, result = Path(name, "given.npy"), Path(name, "result.npy")
        np.save(given, keys)
        for _ in range(ROUNDS):
            job = sort_file(given, {}, device, limit=limit)
            if job is None:
                raise SystemExit("the limit is above what the file takes")
            done = job.run(result, lambda done, total, label: None)
            row = f"file, {job.split.runs} runs"
            tell(row, keys.nbytes, done.seconds, dict(done.stages), 0.0)
            print(
                f"{'check of the result':>28}{done.check_seconds:9.3f}  {done.fault or 'correct'}"
            )
        if not np.array_equal(np.load(result, mmap_mode="r"), right):
            raise SystemExit("a result is wrong")


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--megabytes", type=int, default=4000, help="of the array")
    parser.add_argument("--limits", default="500,2000", help="of the device's memory, in MB")
    parser.add_argument("--dtypes", default="int32,float64")
    parser.add_argument("--file", metavar="FOLDER", help="for arrays in files")
    options = parser.parse_args()
    device = ol.select_device(options.device)
    limits = [float(limit) * 1e6 for limit in options.limits.split(",")]
    print(device)
    names = ("total s", "GB/s", "read s", "work s", "write s", "kernels", "plain s", "t/longest")
    print(f"{options.megabytes:>25} MB" + "".join(f"{name:>9}" for name in names))
    for dtype in map(np.dtype, options.dtypes.split(",")):
        keys = random_keys(dtype, options.megabytes * 1_000_000)
        right = np.sort(keys, kind="stable" if dtype.kind == "f" else None)
        if options.file is None:
            in_memory(device, keys, right, limits)
        else:
            for limit in limits:
                in_file(device, options.file, keys, right, limit)


if __name__ == "__main__":
    main()
