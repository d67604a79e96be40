"""Time matrix products of several libraries on CPUs in turns, each in its own process.

    python tools/libraries_in_turns.py --sides ours,numpy,torch --shapes 1000,2048,1x1000x1000

Threads of some libraries spin for a tenth of a second after a call, so libraries that share a
process slow each other down. The speed of processors changes from second to second, so times of
libraries that run one after the other cannot be compared. Here each side has a process that sleeps
except in its turn, turns are short, and a pause follows each. A side that is a path is opencl_lab
from there. Prints the least and the median time of a call in milliseconds, processor time of a
call, and the speed-up of the first side over each other one by both times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

PAUSE_SECONDS = 0.12
"""Pause after each turn, until threads of BLAS libraries sleep."""
TURN_SECONDS = 0.08
"""Duration of a turn."""


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
    """Do turns as lines of standard input ask for them: m n k dtype seconds."""
    import numpy as np

    call, rng, known = caller(side), np.random.default_rng(0), ""
    for line in sys.stdin:
        *sizes, dtype, seconds = line.split()
        if line != known:
            m, n, k = map(int, sizes)
            a, b = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
            for _ in range(2):  # what is built or recorded at first is not timed
                call(a, b)
            known = line
        call(a, b)  # wakes threads that have slept
        times, end, busy = [], time.perf_counter() + float(seconds), time.process_time()
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            call(a, b)
            times.append(time.perf_counter() - begin)
        print(json.dumps([times, (time.process_time() - busy) / len(times)]), flush=True)


class Side:
    """A library in a process of its own."""

    def __init__(self, name: str):
        self.name = name
        environment = dict(os.environ)
        if "/" in name:
            environment["PYTHONPATH"] = f"{name}:{environment.get('PYTHONPATH', '')}"
        command = [sys.executable, __file__, "--serve", name]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.times: list[float] = []
        self.busy: list[float] = []

    def turn(self, request: str, keep: bool = True) -> None:
        """Let it run for a turn."""
        assert self._child.stdin and self._child.stdout
        self._child.stdin.write(request)
        self._child.stdin.flush()
        times, busy = json.loads(self._child.stdout.readline())
        if keep:
            self.times += times
            self.busy.append(busy)

    def end(self) -> None:
        """Let the process end."""
        assert self._child.stdin
        self._child.stdin.close()
        self._child.wait()


def compare(sides: list[Side], shape: str, dtype: str, seconds: float) -> str:
    """Return a line of times and ratios for one shape."""
    sizes = shape.split("x") * (3 if "x" not in shape else 1)
    request = " ".join([*sizes, dtype, str(TURN_SECONDS)]) + "\n"
    for side in sides:
        side.times, side.busy = [], []
        side.turn(request, keep=False)
        time.sleep(PAUSE_SECONDS)
    end = time.monotonic() + seconds
    while not sides[-1].busy or time.monotonic() < end:
        for side in sides:
            side.turn(request)
            time.sleep(PAUSE_SECONDS)
    found = [(s.name[-12:], min(s.times), median(s.times), median(s.busy)) for s in sides]
    texts = [
        f"{name} {least * 1e3:.3f}/{middle * 1e3:.3f} cpu {busy * 1e3:.3f}"
        for name, least, middle, busy in found
    ]
    _, least, middle, _ = found[0]
    texts += [f"over {n} {low / least:.2f} {mid / middle:.2f}" for n, low, mid, _ in found[1:]]
    return f"{dtype} {shape:>14}  " + "  ".join(texts)


def main() -> None:
    """Compare all shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--sides", default="ours,numpy")
    parser.add_argument("--shapes", default="256,512,1000,1024,2048")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    sides = [Side(name) for name in options.sides.split(",")]
    asked = [(s, d) for d in options.dtypes.split(",") for s in options.shapes.split(",")]
    for shape, dtype in asked:
        print(compare(sides, shape, dtype, options.seconds / len(asked)), flush=True)
    for side in sides:
        side.end()


if __name__ == "__main__":
    main()
