"""What calls on device arrays cost on a GPU, beside their launches alone and beside torch and CuPy.

Usage: ``python tools/gpu_calls.py [--device SPEC] [--large]``

Each figure is the time of one call in a row that is waited for once, at the end, and of that the
host's share until the last call has returned: medians of interleaved rounds, in microseconds.
``launches`` enqueues the same executables with nothing around them, on a queue without profiling,
with results and scratch from a memory pool. ``--large`` adds results of 1 GiB.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools

import opencl_lab as ol
from opencl_lab.runtime.replay import Recipe, record
from opencl_lab.runtime.session import default_queue

ROUNDS = 7
ROW_SECONDS = 0.03
MOST_CALLS = 100

Call = Callable[[], Any]


def complexes(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """Return random complex64 numbers."""
    pairs = rng.standard_normal((*shape, 2), np.float32)
    return pairs.view(np.complex64).reshape(shape)


def cases(rng: np.random.Generator, large: bool) -> Iterator[tuple[str, str, list[Any], dict]]:
    """Yield a title, a public function's name, its arrays and its options."""

    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape, np.float32)

    def keys(n: int) -> np.ndarray[Any, Any]:
        return rng.integers(-(2**31), 2**31, n, np.int32)

    def box(n: int) -> dict[str, Any]:
        return {"weights": rng.standard_normal((n, n), np.float32)}

    yield "sort 1,000", "sort", [keys(1000)], {}
    yield "sort 50,000", "sort", [keys(50_000)], {}
    yield "gemm 256", "gemm", [floats(256, 256), floats(256, 256)], {}
    yield "gemm 512", "gemm", [floats(512, 512), floats(512, 512)], {}
    yield "conv2d 512^2, 3 x 3", "conv2d", [floats(512, 512)], box(3)
    yield "conv2d 3000 x 5000, 5 x 5", "conv2d", [floats(3000, 5000)], box(5)
    yield "conv2d 16384^2, 3 x 3", "conv2d", [floats(16384, 16384)], box(3)
    yield "fft 16 x 1024", "fft", [complexes(rng, 16, 1024)], {}
    yield "fft 16,384 x 1024", "fft", [complexes(rng, 16384, 1024)], {}
    yield "fft 128 x 100,000", "fft", [complexes(rng, 128, 100_000)], {}
    yield "fft 2^20", "fft", [complexes(rng, 2**20)], {}
    yield "fftn 256^3", "fftn", [complexes(rng, 256, 256, 256)], {}
    if large:
        yield "fft 131,072 x 1024", "fft", [complexes(rng, 2**17, 1024)], {}
        yield "sort 2^28", "sort", [keys(2**28)], {}


def row(call: Call, finish: Call, calls: int) -> tuple[float, float]:
    """Return the microseconds of a call until all is done, and until the last has returned."""
    finish()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    returned = time.perf_counter() - begin
    finish()
    return (time.perf_counter() - begin) / calls * 1e6, returned / calls * 1e6


def rows(callers: dict[str, tuple[Call, Call]]) -> dict[str, tuple[float, float]]:
    """Return the median row of each caller, taken in turns."""
    counts, times = {}, {name: [] for name in callers}
    for name, (call, finish) in callers.items():
        row(call, finish, 3)
        counts[name] = int(min(max(ROW_SECONDS * 1e6 / row(call, finish, 3)[0], 5), MOST_CALLS))
    gc.disable()
    for _ in range(ROUNDS):
        for name, (call, finish) in callers.items():
            time.sleep(0.01)
            row(call, finish, 2)
            times[name].append(row(call, finish, counts[name]))
    gc.enable()
    return {
        name: (median(total for total, _ in seen), median(host for _, host in seen))
        for name, seen in times.items()
    }


def launches(recipe: Recipe, arrays: list[Any], queue: Any) -> Call:
    """Return what enqueues the steps of a recorded call and does nothing else."""
    pool = pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))
    given = [array.base_data for array in arrays]
    sizes = [item.nbytes for item in recipe.fresh]
    fixed = [array.base_data for array in recipe.constants]

    def enqueue() -> None:
        memory = [*given, *(pool.allocate(nbytes) for nbytes in sizes), *fixed]
        for step in recipe.steps:
            buffers = {name: memory[place] for name, place in step.places}
            for spec in step.executable.plan.with_role("scratch"):
                buffers[spec.name] = pool.allocate(spec.nbytes)
            step.executable.enqueue(queue, buffers)

    return enqueue


def peers(name: str, arrays: list[Any], options: dict[str, Any]) -> dict[str, tuple[Call, Call]]:
    """Return the calls of torch and CuPy, where they are."""
    found: dict[str, tuple[Call, Call]] = {}
    for library in ("torch", "cupy"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        if library == "torch":
            put = [module.from_numpy(array).cuda() for array in arrays]
            finish = module.cuda.synchronize
        else:
            put = [module.asarray(array) for array in arrays]
            finish = module.cuda.Device().synchronize
        call: Call | None = None
        if name == "sort":
            call = (lambda m, p: lambda: m.sort(p[0]))(module, put)
        elif name == "gemm":
            call = (lambda p: lambda: p[0] @ p[1])(put)
        elif name in ("fft", "fftn"):
            call = (lambda m, p: lambda: getattr(m.fft, name)(p[0]))(module, put)
        elif name == "conv2d" and library == "torch":
            weights = module.from_numpy(options["weights"]).cuda()[None, None]
            image = put[0][None, None]
            module.backends.cudnn.benchmark, module.backends.cudnn.allow_tf32 = True, False
            conv2d = module.nn.functional.conv2d
            call = (lambda c, i, w: lambda: c(i, w, padding="same"))(conv2d, image, weights)
        if call is not None:
            call()
            found[library] = (call, finish)
    return found


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    device = ol.select_device(given.device)
    queue = default_queue(device)
    print(device)
    columns = ("public", "host", "prepared", "host", "launches", "host", "torch", "cupy")
    print(f"| {'call':26s} | " + " | ".join(f"{name:>8s}" for name in columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for title, name, arrays, options in cases(np.random.default_rng(0), given.large):
        function = getattr(ol.fft, name, None) or getattr(ol, name)
        put = [cl.array.to_device(queue, array) for array in arrays]
        _, recipe, _ = record(function, put, options)
        assert recipe is not None, f"{title} cannot be replayed"
        alone = launches(recipe, put, queue)
        prepared = ol.prepare(function, *put, **options)
        out = prepared(*put)
        out.base_data  # noqa: B018 - an array of the user's own
        finish = queue.finish
        callers: dict[str, tuple[Call, Call]] = {
            "public": (lambda f=function, p=put, o=options: f(*p, **o), finish),
            "prepared": (lambda f=prepared, p=put, o=out: f(*p, out=o), finish),
            "launches": (alone, finish),
            **peers(name, arrays, options),
        }
        seen = rows(callers)
        cells = []
        for who in ("public", "prepared", "launches"):
            cells += [f"{value:8.1f}" for value in seen[who]]
        cells += [f"{seen[who][0]:8.1f}" if who in seen else " " * 8 for who in ("torch", "cupy")]
        print(f"| {title:26s} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
