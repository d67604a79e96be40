"""Measure the sort on a GPU, device-resident, beside the sorts of CuPy (CUB) and PyTorch.

    python tools/gpu_sort.py [--device SPEC] [--sizes 50000,1000000,16000000] [--configs]

Each result is checked against NumPy. Times are medians of event times of kernels for
opencl_lab and of device events for the peers, on the same random int32 keys; a peer that
is not installed is left out. `--configs` tries a set of configurations as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np
import pyopencl.array

import opencl_lab as ol
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.runtime.session import default_queue

RUNS = 9
CONFIGS = (
    {"NARROW": False},
    {"TILE": 0},
    {"TILE": 1024},
    {"TILE": 4096},
    {"WG_SIZE": 128},
    {"WG_SIZE": 512},
    {"WG_SIZE": 128, "WORK_PER_ITEM": 4},
    {"WORK_PER_ITEM": 2},
    {"WORK_PER_ITEM": 4},
    {"WORK_PER_ITEM": 8},
)


def ours(device: ol.Device, keys: np.ndarray, **config: int) -> float:
    """Return the median time in kernels in milliseconds; raise if the result is wrong."""
    queue = default_queue(device, profiling=True)
    source = pyopencl.array.to_device(queue, keys)
    problem = SortProblem(keys.size, keys.dtype)
    times = []
    for _ in range(RUNS + 1):
        run = SORT.run(problem, {"keys": source}, config=config, queue=queue)
        times.append(run.kernel_ms)
    if not np.array_equal(run.outputs["sorted"].get().reshape(-1), np.sort(keys)):
        raise SystemExit(f"wrong result with {config}")
    return median(times[1:])


def cupy_sort(keys: np.ndarray) -> float:
    """Return the median time of CuPy's sort in milliseconds."""
    import cupy

    source = cupy.asarray(keys)
    return _timed(lambda: cupy.sort(source), cupy.cuda.Event, lambda a, b: _cupy_ms(a, b))


def _cupy_ms(begin: object, end: object) -> float:
    import cupy

    return float(cupy.cuda.get_elapsed_time(begin, end))


def torch_sort(keys: np.ndarray) -> float:
    """Return the median time of PyTorch's sort (with indices) in milliseconds."""
    import torch

    source = torch.from_numpy(keys).cuda()
    return _timed(
        lambda: torch.sort(source),
        lambda: torch.cuda.Event(enable_timing=True),
        lambda a, b: float(a.elapsed_time(b)),
    )


def _timed(sort: Callable, event: Callable, elapsed: Callable) -> float:
    times = []
    for _ in range(RUNS + 2):
        begin, end = event(), event()
        begin.record()
        sort()
        end.record()
        end.synchronize()
        times.append(elapsed(begin, end))
    return median(times[2:])


def main() -> None:
    """Print a row a size and implementation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--sizes", default="50000,1000000,16000000")
    parser.add_argument("--configs", action="store_true")
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    print(device)
    rng = np.random.default_rng(0)
    for size in map(int, arguments.sizes.split(",")):
        keys = rng.integers(-(2**31), 2**31, size, dtype=np.int32)
        rows = {"opencl:odd-even-merge": ours(device, keys)}
        for name, peer in (("cupy (CUB)", cupy_sort), ("torch, with indices", torch_sort)):
            try:
                rows[name] = peer(keys)
            except ImportError:
                continue
        if arguments.configs:
            for config in CONFIGS:
                try:
                    rows[f"  {config}"] = ours(device, keys, **config)
                except ol.OclabError as error:
                    print(f"  {config}: {error}")
        for name, milliseconds in rows.items():
            rate = size / milliseconds * 1e-6
            print(f"n={size:>10} {name:40} {milliseconds:9.3f} ms {rate:8.3f} Gkey/s")


if __name__ == "__main__":
    main()
