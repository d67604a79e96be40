"""Time the first call of each size, with empty caches: what a user waits for in a notebook.

    python tools/cold_calls.py [FAMILY ...] [--alone] [--repeats R]

A child process with empty caches (ours, PoCL's, CUDA's) selects the device, calls a family once
(its first size), and then each other size for the first time. With `--alone` each size has a
child of its own, so that it profits from the first call alone. Prints milliseconds of the first
call, of the second one, and processor time of the first: least of R children. The last line of
a family has the greatest first call of a size but the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]
SIZES: dict[str, list[Any]] = {
    "sort": [1000, 2000, 3001, 50_001, 10**6],
    "gemm": [
        *[(n, n, n) for n in (100, 101, 257, 1000)],
        *[(64, 512, 512), (1, 512, 512), (512, 1, 512), (8, 8, 4096), (300, 200, 100)],
    ],
    "conv2d": [(100, 3), (101, 3), (100, 5), (256, 6), (512, 7), (256, 11), (1000, 3), (300, 15)],
    "fft": [
        *[(n,) for n in (64, 100, 128, 1000, 1024, 1001, 1009, 4096, 1 << 14, 44_100, 1 << 18)],
        *[(100, 64), (1024, 64), (20, 1000), (64, 64, 64)],
    ],
    "rfft": [
        *[(n,) for n in (64, 100, 101, 256, 1000, 1024, 4096, 1 << 14, 44_100)],
        *[(100, 256), (1024, 64)],
    ],
}


def _call(family: str, size: Any) -> Call:
    """Return a public call on NumPy arrays."""
    import opencl_lab as ol

    rng = np.random.default_rng(1)
    if family == "sort":
        keys = rng.integers(0, 1 << 30, size).astype(np.int32)
        return lambda: ol.sort(keys)
    if family == "gemm":
        m, n, k = size
        a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        return lambda: ol.gemm(a, b)
    if family == "conv2d":
        image, weights = (rng.random((side, side), np.float32) for side in size)
        return lambda: ol.conv2d(image, weights)
    x = rng.random(size, np.float32)
    if family == "rfft":
        return lambda: ol.fft.rfft(x)
    signal = x.astype(np.complex64)
    return lambda: ol.fft.fft(signal)


def _first_calls(family: str, sizes: list[Any]) -> None:
    """Print as JSON the seconds of calls of each size, and processor seconds of the first."""
    import opencl_lab as ol

    ol.select_device().queue()
    rows = []
    for size in sizes:
        call = _call(family, size)
        start, used = time.perf_counter(), time.process_time()
        call()
        middle, busy = time.perf_counter(), time.process_time() - used
        call()
        rows.append((middle - start, time.perf_counter() - middle, busy))
    print(json.dumps(rows))


def _child(family: str, sizes: list[Any]) -> Any:
    """Return what `_first_calls` finds in a process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("OCLAB_CACHE_DIR", "POCL_CACHE_DIR", "CUDA_CACHE_PATH")
        caches = {name: f"{folder}/{name}" for name in names}
        command = [sys.executable, "-W", "ignore", __file__, "--child", json.dumps([family, sizes])]
        child = subprocess.run(command, env={**os.environ, **caches}, stdout=subprocess.PIPE)
    if child.returncode:
        sys.exit(f"{family}: the child process ended with {child.returncode}")
    return json.loads(child.stdout.splitlines()[-1])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", default=list(SIZES), metavar="FAMILY")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _first_calls(*json.loads(options.child))
        return
    print(f"{'first call':24}{'ms':>10}{'second':>10}{'processor':>10}")
    for family in options.families:
        first, *others = SIZES[family]
        runs = [[first, size] for size in others] if options.alone else [SIZES[family]]
        least = []
        for sizes in runs:
            rows = [_child(family, sizes) for _ in range(options.repeats)]
            least += (1e3 * np.min(rows, axis=0)).tolist()[1 if least else 0 :]
        for size, row in zip(SIZES[family], least, strict=True):
            print(f"{family + ' ' + str(size):24}" + "".join(f"{figure:10.1f}" for figure in row))
        worst = max(row[0] for row in least[1:])
        print(f"{family}: the greatest of a new size {worst:.0f} ms\n", flush=True)


if __name__ == "__main__":
    main()
