"""Compare public calls of Fourier transforms with those of other libraries, as a CSV file.

    python tools/fft_calls.py "NVIDIA H100" > docs/data/fft_calls_h100.csv
    OCLAB_DEVICE=cpu python tools/fft_calls.py "2 cores of an AMD EPYC" --dtype complex64

On a GPU the arrays are there, calls follow each other in a row, and each turn ends when all are
done; the others are CuPy and PyTorch. On a CPU arrays are NumPy's, and the others are SciPy and
FFTW with as many threads as there are processors, and PyTorch; a plan of FFTW's has its input and
output in place. Libraries that are not installed are left out. All take turns in one process; the
figures are medians of the turns. A result that is not right ends the command.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from statistics import median
from typing import Any

import numpy as np

import opencl_lab as ol

TURNS = 5
SECONDS, MOST_CALLS = 0.02, 300  # of a turn
PAUSE = 0.05  # after a turn, until threads of other libraries sleep
NEAR = {"complex64": 1e-5, "complex128": 1e-13}
COMPONENTS = {"complex64": "float32", "complex128": "float64"}
COLUMNS = "shape", "function", "dtype"
Call = Callable[[], Any]
Side = tuple[Call, Call]
"""A call, and how to wait until it is done."""

SINGLE = (1024, 16_384, 65_536, 262_144, 2**20, 10**6, 2**21, 2**22, 2**24)
ROWS = (
    (1024, 64), (1024, 1024), (1024, 4096), (1024, 16_384), (1024, 15_625), (8, 65_536),
    (64, 65_536), (1000, 997), (64, 12_345), (20, 44_100), (64, 15_625), (1, 1_594_323),
    (1, 100_003), (300, 2999), (1, 193_350),
)  # fmt: skip
AXES = ((1000, 1000), (2048, 2048), (3000, 3000), (4096, 4096), (256, 256, 256), (8192, 8192))
REAL = AXES[0], AXES[3], AXES[4]


def cases() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield functions and the shapes that they transform."""
    yield from (("fft", (1, n)) for n in SINGLE)
    yield from (("fft", shape) for shape in ROWS)
    yield from (("fftn", shape) for shape in AXES)
    yield from (("rfftn", shape) for shape in REAL)


def on_gpu(name: str, x: Any) -> Iterator[tuple[str, Side]]:
    """Yield our call and those of other libraries on the first GPU."""
    import pyopencl.array as cla

    queue = ol.select_device().queue()
    ours = cla.to_device(queue, x)
    yield "opencl_lab", (lambda: getattr(ol.fft, name)(ours), queue.finish)
    try:
        import cupy

        theirs = cupy.asarray(x)
        wait = cupy.cuda.get_current_stream().synchronize
        yield "CuPy", (lambda: getattr(cupy.fft, name)(theirs), wait)
    except ImportError:
        pass
    try:
        import torch

        tensor = torch.from_numpy(x).cuda()
        yield "PyTorch", (lambda: getattr(torch.fft, name)(tensor), torch.cuda.synchronize)
    except ImportError:
        pass


def on_cpu(name: str, x: Any) -> Iterator[tuple[str, Side]]:
    """Yield our call and those of other libraries on NumPy arrays."""

    def nothing() -> None:
        pass

    count = os.cpu_count() or 1
    yield "opencl_lab", (lambda: getattr(ol.fft, name)(x), nothing)
    try:
        import scipy.fft

        yield "SciPy", (lambda: getattr(scipy.fft, name)(x, workers=count), nothing)
    except ImportError:
        pass
    try:
        import pyfftw.builders

        build = getattr(pyfftw.builders, name)
        effort = "FFTW_MEASURE" if x.size <= 1 << 20 else "FFTW_ESTIMATE"
        plan = build(x.copy(), threads=count, planner_effort=effort)
        plan.input_array[:] = x  # planning may have overwritten it
        yield "FFTW", (plan, nothing)
    except ImportError:
        pass
    try:
        import torch

        tensor = torch.from_numpy(x)
        yield "PyTorch", (lambda: getattr(torch.fft, name)(tensor), nothing)
    except ImportError:
        pass


def seconds(side: Side, calls: int) -> float:
    """Return the time of a call, of so many in a row."""
    call, wait = side
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    wait()
    return (time.perf_counter() - begin) / calls


def medians(sides: dict[str, Side], pause: float) -> dict[str, float]:
    """Return the median milliseconds of each side over turns."""
    times: dict[str, list[float]] = {}
    counts = {}
    for name, side in sides.items():
        seconds(side, 2)
        counts[name] = max(3, min(MOST_CALLS, int(SECONDS / seconds(side, 3))))
    for _ in range(TURNS):
        for name, side in sides.items():
            time.sleep(pause)
            times.setdefault(name, []).append(seconds(side, counts[name]))
    return {name: 1e3 * median(found) for name, found in times.items()}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("title", help="what the file calls the device")
    parser.add_argument("--dtype", choices=tuple(NEAR), help="default: both")
    parser.add_argument("--most", type=int, default=1 << 26, help="most numbers of an array")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # no GPU, which the command says itself
    gpu = ol.select_device().kind == "gpu"
    print(ol.select_device(), file=sys.stderr)
    made = on_gpu if gpu else on_cpu
    rng, rows = np.random.default_rng(0), []
    for dtype in (options.dtype,) if options.dtype else NEAR:
        for name, shape in cases():
            if np.prod(shape) > options.most:
                continue
            x = rng.standard_normal(shape)
            if name == "rfftn":
                given = x.astype(COMPONENTS[dtype])
            else:
                given = (x + 1j * rng.standard_normal(shape)).astype(dtype)
            sides = dict(made(name, given))
            result = sides["opencl_lab"][0]()
            result = result.get() if gpu else result
            exact = given.astype(np.float64 if name == "rfftn" else np.complex128)
            right = getattr(np.fft, name)(exact)
            error = np.abs(result - right).max() / np.abs(right).max()
            if not error < NEAR[dtype]:
                sys.exit(f"{name} of {shape} {dtype}: wrong by {error:.1e} of the largest number")
            label = " x ".join(f"{n:,}" for n in shape)
            rows.append(((label, name, given.dtype.name), medians(sides, 0.0 if gpu else PAUSE)))
            said = ", ".join(f"{side} {ms:.4g}" for side, ms in rows[-1][1].items())
            print(f"{name} {label} {dtype}: {said}", file=sys.stderr, flush=True)
    if not rows:
        sys.exit(f"no shape has at most {options.most:,} numbers")
    libraries = [f"{name} ms" for name in rows[0][1]]
    where = "arrays on the device, calls in a row" if gpu else "NumPy arrays"
    head = {
        "device": options.title,
        "date": date.today().isoformat(),
        "method": f"Public calls, {where}, all libraries by turns in one process; medians",
        "command": shlex.join(["python", "tools/fft_calls.py", *sys.argv[1:]]),
        "compared": "; ".join(libraries),
    }
    for key, value in head.items():
        print(f"# {key}: {value}")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*COLUMNS, *libraries])
    for what, times in rows:
        writer.writerow([*what, *(f"{times[column[:-3]]:.3g}" for column in libraries)])


if __name__ == "__main__":
    main()
