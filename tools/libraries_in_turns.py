"""Products of several libraries on CPUs, each in a process of its own, by turns, as a CSV file.

    python tools/libraries_in_turns.py --shapes 1000,2048,1x1000x1000 > docs/data/gemm_turns.csv

Threads of some libraries look for further work for a tenth of a second after a call, so libraries
that share a process slow each other down. Processors change their speed from second to second, so
libraries that run one after the other are not compared. Here each library has a process that
sleeps while it is not its turn, turns are short, and all are quiet before the next one. A side
that is a path is opencl_lab from there.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

NAMES = {"ours": "opencl_lab", "numpy": "BLAS", "torch": "PyTorch"}
QUIESCE_SECONDS = 0.12  # after each turn, until threads of BLAS libraries sleep
TURN_SECONDS = 0.08
METHOD = (
    "Public calls on NumPy arrays, each timed by itself; each library has a process of its own, "
    "and the processes take turns; medians, and the least times beside them"
)


def caller(side: str) -> Callable[[Any, Any], Any]:
    """Return what multiplies two arrays of NumPy's."""
    if side == "numpy":
        return lambda a, b: a @ b
    if side == "torch":
        import torch

        return lambda a, b: torch.from_numpy(a) @ torch.from_numpy(b)
    import opencl_lab

    return lambda a, b: opencl_lab.gemm(a, b)


def serve(side: str) -> None:
    """Do turns as lines of standard input ask for them: m n k dtype."""
    import numpy as np

    call, rng, known = caller(side), np.random.default_rng(0), ""
    for line in sys.stdin:
        *sizes, dtype = line.split()
        if line != known:
            m, n, k = map(int, sizes)
            a, b = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
            for _ in range(2):  # what is built or recorded at first is not timed
                call(a, b)
            known = line
        call(a, b)  # wakes threads that have slept
        times, end = [], time.perf_counter() + TURN_SECONDS
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            call(a, b)
            times.append(time.perf_counter() - begin)
        print(json.dumps(times), flush=True)


def started(side: str) -> subprocess.Popen[str]:
    """Return the process of a library."""
    environment = dict(os.environ)
    if "/" in side:
        environment["PYTHONPATH"] = f"{side}:{environment.get('PYTHONPATH', '')}"
    command, pipe = [sys.executable, __file__, "--serve", side], subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def turn(child: subprocess.Popen[str], request: str) -> list[float]:
    """Let a library run for a turn, and return the milliseconds of its calls."""
    assert child.stdin and child.stdout
    child.stdin.write(request)
    child.stdin.flush()
    times = [1e3 * seconds for seconds in json.loads(child.stdout.readline())]
    time.sleep(QUIESCE_SECONDS)
    return times


def measured(
    children: list[subprocess.Popen[str]], request: str, seconds: float
) -> list[list[float]]:
    """Return the milliseconds of all calls of each library, without those of a first turn."""
    for child in children:
        turn(child, request)
    times: list[list[float]] = [[] for _ in children]
    end = time.monotonic() + seconds
    while not times[-1] or time.monotonic() < end:
        for child, found in zip(children, times, strict=True):
            found += turn(child, request)
    return times


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="not said", help="a name for the head of the file")
    parser.add_argument("--sides", default="ours,numpy,torch")
    parser.add_argument("--shapes", default="256,512,1000,1024,2048")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--seconds", type=float, default=20.0, help="of all shapes together")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    sides = options.sides.split(",")
    names = [NAMES.get(side, side[-12:]) for side in sides]
    asked = [(s, d) for d in options.dtypes.split(",") for s in options.shapes.split(",")]
    columns = [f"{name} ms" for name in names]
    print(f"# device: {options.device}\n# date: {time.strftime('%Y-%m-%d')}\n# method: {METHOD}")
    print(f"# command: python {' '.join(sys.argv)}\n# compared: {'; '.join(columns)}")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["m", "n", "k", "dtype", *columns, *(f"{name} least" for name in names)])
    children = [started(side) for side in sides]
    for shape, dtype in asked:
        sizes = shape.split("x") * (1 if "x" in shape else 3)
        times = measured(children, f"{' '.join(sizes)} {dtype}\n", options.seconds / len(asked))
        found = [f"{which(some):.4g}" for which in (median, min) for some in times]
        writer.writerow([*sizes, dtype, *found])
        sys.stdout.flush()
    for child in children:
        assert child.stdin
        child.stdin.close()
        child.wait()


if __name__ == "__main__":
    main()
