"""Measure copies between arrays of the host and a GPU: through pinned memory, and plain.

    python tools/gpu_host_copies.py [--device SPEC] [--sizes 1,10,40,400,2000] [--grid] [--calls]

Prints GB/s for sizes in MB: to the device (``send``) and back, into an array that was there before
(``fetch``) and into a new one (``fetch new``), whose pages come into being meanwhile. Each is the
median of runs that take turns, and each result is checked. `--grid` tries numbers of threads and
sizes of chunks. `--calls` measures whole public calls on NumPy arrays instead, with and without
pinned memory, and says what rate that is for all that they read and return.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from statistics import median

import numpy as np
import pyopencl as cl

import opencl_lab as ol
from opencl_lab.runtime import staging
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.runtime.staging import Staging

RUNS = 7
ENOUGH = 20.0  # seconds for one row
DEFAULT = "as shipped"


def stagings(queue: cl.CommandQueue, grid: bool) -> dict[str, Staging | None]:
    """Return what is compared, by name; None is a plain copy."""
    found: dict[str, Staging | None] = {"plain": None, DEFAULT: session_of(queue).staging}
    if grid:
        for threads, chunk in product((1, 2, 4, 6, 8), (1 << 20, 2 << 20, 4 << 20, 8 << 20)):
            found[f"{threads} x {chunk >> 20} MiB"] = Staging(
                queue.context,
                queue.device,
                chunk=chunk,
                limit=2 * threads * chunk,
                threads=threads,
            )
    return found


def copies(queue: cl.CommandQueue, megabytes: int, grid: bool) -> None:
    """Print the rates of all copies of one size."""
    nbytes = megabytes * 10**6
    array = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    reused = np.zeros(nbytes, np.uint8)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, nbytes)

    def send(staged: Staging | None) -> None:
        if staged is None:
            cl.enqueue_copy(queue, buffer, array, is_blocking=False)
        else:
            staged.send(queue, buffer, array)
        queue.finish()

    def fetch(staged: Staging | None, target: np.ndarray) -> None:
        if staged is None:
            cl.enqueue_copy(queue, target, buffer, is_blocking=False)
        else:
            staged.fetch(queue, target, buffer)
        queue.finish()

    def check(target: np.ndarray) -> None:
        if not np.array_equal(target, array):
            raise SystemExit("a copy is wrong")

    ways = stagings(queue, grid)
    times: dict[tuple[str, str], list[float]] = {
        (name, what): [] for name in ways for what in ("send", "fetch", "fetch new")
    }
    for turn in range(RUNS + 1):
        begun = time.perf_counter()
        for name, staged in ways.items():
            cl.enqueue_fill_buffer(queue, buffer, np.uint8(0), 0, nbytes)
            queue.finish()
            seconds = {"send": timed(lambda s=staged: send(s))}
            reused[:: max(1, nbytes // 1000)] = 0
            seconds["fetch"] = timed(lambda s=staged: fetch(s, reused))
            check(reused)
            begin = time.perf_counter()
            new = np.empty(nbytes, np.uint8)
            fetch(staged, new)
            seconds["fetch new"] = time.perf_counter() - begin
            check(new)
            del new
            if turn:  # the first one warms up
                for what, value in seconds.items():
                    times[name, what].append(value)
        if turn and (time.perf_counter() - begun) * (turn + 2) > ENOUGH:
            break
    print(f"\n{megabytes} MB, GB/s    " + "".join(f"{w:>12}" for w in ("send", "fetch", "new")))
    for name in ways:
        rates = (
            nbytes / median(times[name, what]) * 1e-9 for what in ("send", "fetch", "fetch new")
        )
        print(f"{name:>16}    " + "".join(f"{rate:12.1f}" for rate in rates))
    for staged in ways.values():
        if staged is not None:
            staged.free_held()


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@contextmanager
def plain_copies() -> Iterator[None]:
    """Let no array be large enough for pinned memory."""
    before = staging.LEAST, staging.LEAST_SENT
    staging.LEAST = staging.LEAST_SENT = 1 << 62
    try:
        yield
    finally:
        staging.LEAST, staging.LEAST_SENT = before


def calls(queue: cl.CommandQueue) -> None:
    """Print the times of public calls with and without pinned memory, and of their copies."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5_000, 2_000), np.float32).view(np.complex64)
    keys = rng.integers(-(2**31), 2**31, 10_000_000, np.int32)
    image = rng.standard_normal((4096, 4096), np.float32)
    a, b = (rng.standard_normal((4096, 4096), np.float32) for _ in range(2))
    weights = np.ones((3, 3), np.float32)
    rows: dict[str, tuple[int, Callable[[], np.ndarray]]] = {
        "fft 5000 x 1000": (2 * x.nbytes, lambda: ol.fft.fft(x, queue=queue)),
        "sort 10,000,000": (2 * keys.nbytes, lambda: ol.sort(keys, queue=queue)),
        "conv2d 4096^2": (2 * image.nbytes, lambda: ol.conv2d(image, weights, queue=queue)),
        "gemm 4096^3": (3 * a.nbytes, lambda: ol.gemm(a, b, queue=queue)),
    }
    print(f"{'':>18}{'MB':>8}{'plain ms':>12}{'pinned ms':>12}{'ratio':>8}{'GB/s':>8}")
    for name, (nbytes, call) in rows.items():
        right = call()
        plain, pinned = [], []
        for _ in range(RUNS + 1):
            with plain_copies():
                plain.append(timed(call))
            pinned.append(timed(call))
        if not np.array_equal(call(), right):
            raise SystemExit(f"{name} is wrong")
        one, other = median(plain[1:]), median(pinned[1:])
        print(
            f"{name:>18}{nbytes / 1e6:8.0f}{one * 1e3:12.2f}{other * 1e3:12.2f}"
            f"{one / other:8.2f}{nbytes / other * 1e-9:8.1f}"
        )


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--sizes", default="1,10,40,400,2000", help="of arrays, in MB")
    parser.add_argument("--grid", action="store_true", help="try threads and chunks")
    parser.add_argument("--calls", action="store_true", help="measure public calls instead")
    options = parser.parse_args()
    device = ol.select_device(options.device)
    queue = default_queue(device)
    print(device)
    if options.calls:
        if device.unified_memory:
            raise SystemExit("the device works on memory of the host, so nothing is copied")
        calls(queue)
        return
    for megabytes in map(int, options.sizes.split(",")):
        copies(queue, megabytes, options.grid)


if __name__ == "__main__":
    main()
