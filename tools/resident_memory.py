"""Print the memory of this process over many calls and many shapes: it must level off.

    python tools/resident_memory.py [--calls 100000] [--shapes 5000] [--kinds sort,fft]

First small calls again and again, on arrays of the host and of the device, then as many different
shapes of each kind. What a runtime itself keeps of each program or kernel that is gone is in it.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl.array as cla

import opencl_lab as ol
from opencl_lab.runtime.session import default_queue, session_of

REPORTS = 10
Call = Callable[[int], Any]


def megabytes() -> float:
    """Return the resident memory of this process, in units of 2^20 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def report(name: str, count: int, call: Call) -> None:
    """Do `count` calls and print the memory after each tenth of them."""
    queue = default_queue(ol.select_device())
    kept = session_of(queue)._executables
    sizes, begin = [f"{megabytes():.0f}"], time.perf_counter()
    for number in range(count):
        call(number)
        if (number + 1) % max(1, count // REPORTS) == 0:
            queue.finish()
            gc.collect()
            sizes.append(f"{megabytes():.0f}")
    seconds = time.perf_counter() - begin
    tables = kept.nbytes / 2**20
    print(f"{name:<16}{count:>8} calls {seconds:7.0f} s   MiB: {' '.join(sizes)}", flush=True)
    print(f"{'':16}{len(kept):>8} executables kept, {tables:.1f} MiB of tables", flush=True)


def shapes(rng: np.random.Generator) -> dict[str, Call]:
    """Return calls whose shapes differ by their number."""
    reals = rng.random(1 << 16, np.float32)
    points = reals[: 1 << 15].astype(np.complex64)
    image = rng.random((128, 128), np.float32)
    weights = rng.random((3, 3), np.float32)
    return {
        "sort": lambda i: ol.sort(reals[: 100 + i]),
        "gemm": lambda i: ol.gemm(
            reals[: (8 + i % 71) * 50].reshape(-1, 50), reals[: 50 * (8 + i // 71)].reshape(50, -1)
        ),
        "conv2d": lambda i: ol.conv2d(image[: 30 + i % 71, : 30 + i // 71].copy(), weights),
        "fft": lambda i: ol.fft.fft(points[: 64 + i]),
        "rfft": lambda i: ol.fft.rfft(reals[: 64 + i]),
        "dft": lambda i: ol.dft(points[: 16 + i]),
    }


def repeated(rng: np.random.Generator) -> dict[str, Call]:
    """Return calls of one shape each, on the host and on the device."""
    queue = default_queue(ol.select_device())
    vector, matrix = rng.random(1000, np.float32), rng.random((64, 64), np.float32)
    points, weights = vector.astype(np.complex64), rng.random((3, 3), np.float32)
    on_device = [cla.to_device(queue, array) for array in (vector, matrix, points)]
    calls: dict[str, Call] = {}
    for place, (a, b, c) in {"host": (vector, matrix, points), "device": on_device}.items():
        calls |= {
            f"sort, {place}": partial(lambda x, i: ol.sort(x), a),
            f"gemm, {place}": partial(lambda x, i: ol.gemm(x, x), b),
            f"conv2d, {place}": partial(lambda x, i: ol.conv2d(x, weights), b),
            f"fft, {place}": partial(lambda x, i: ol.fft.fft(x), c),
        }
    return calls


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=100_000, help="small calls in all")
    parser.add_argument("--shapes", type=int, default=5_000, help="shapes of each kind")
    parser.add_argument("--kinds", help="kinds of the second part, with commas between")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    if options.calls:
        calls = repeated(rng)
        for name, call in calls.items():
            report(name, options.calls // len(calls), call)
    if options.shapes:
        for name, call in shapes(rng).items():
            if options.kinds is None or name in options.kinds.split(","):
                report(name, options.shapes, call)


if __name__ == "__main__":
    main()
