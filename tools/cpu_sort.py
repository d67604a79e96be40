"""Public calls of `sort` on NumPy arrays beside `numpy.sort`, and skewed keys beside uniform ones.

Calls of both sides take turns in one process. Of each the fastest and the median are shown, in
milliseconds, with the ratios of both; medians tell little on a machine that does other work.

    python tools/cpu_sort.py --sizes 50000,1000000 --rounds 30
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import opencl_lab as ol

Array = np.ndarray[Any, Any]


def uniform(rng: np.random.Generator, n: int) -> Array:
    """Return int32 keys of the whole range."""
    return rng.integers(-(2**31), 2**31, n).astype(np.int32)


def skewed(rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Return int32 keys of several distributions and orders."""
    plain = uniform(rng, n)
    ordered = np.sort(plain)
    nearly = ordered.copy()
    one, other = rng.integers(0, n, (2, n // 100))
    nearly[one], nearly[other] = nearly[other].copy(), nearly[one].copy()
    keys = {"uniform": plain, "sorted": ordered, "reversed": ordered[::-1].copy()}
    keys |= {"nearly sorted": nearly, "equal": np.full(n, 7, np.int32)}
    keys |= {"16 values": rng.integers(0, 16, n).astype(np.int32) * 12345}
    keys |= {"below 65,536": rng.integers(0, 65536, n).astype(np.int32)}
    for exponent in (1.1, 1.3, 2.0):
        drawn = np.minimum(rng.zipf(exponent, n), 2**31 - 1).astype(np.int32)
        keys |= {f"Zipf {exponent}": drawn, f"Zipf {exponent}, negative": -drawn}
    return keys


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the fastest and the median time of each call in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 5):  # the first ones are not counted
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if turn >= 5:
                times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: (min(some), float(np.median(some))) for name, some in times.items()}


def report(
    keys: str, name: str, fastest: float, median: float, ratios: tuple[float, float], base: str
) -> None:
    """Print one line."""
    times = f"{fastest:9.3f} {median:9.3f} ms {ratios[0]:6.2f} {ratios[1]:6.2f}"
    print(f"{keys:>14} {name:24} {times} x {base}")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50000,1000000,10000000")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    print(ol.select_device().name, ol.select_device().platform)
    shapes = [(int(size),) for size in given.sizes.split(",")]
    for shape in [*shapes, (1000, 1000)]:
        keys = uniform(rng, shape[0]) if len(shape) == 1 else rng.random(shape, np.float32)
        out = np.empty_like(keys)
        calls: dict[str, Callable[[], Any]] = {
            "new result": partial(ol.sort, keys),
            "out=": partial(ol.sort, keys, out=out),
            "NumPy": partial(np.sort, keys),
        }
        found = in_turns(calls, given.rounds)
        for name, (fastest, median) in found.items():
            ratios = found["NumPy"][0] / fastest, found["NumPy"][1] / median
            report(str(shape), name, fastest, median, ratios, "NumPy")
    for (n,) in shapes:
        found = in_turns(
            {name: partial(ol.sort, keys) for name, keys in skewed(rng, n).items()},
            given.rounds,
        )
        for name, (fastest, median) in found.items():
            ratios = found["uniform"][0] / fastest, found["uniform"][1] / median
            report(f"{n:,}", name, fastest, median, ratios, "uniform")


if __name__ == "__main__":
    main()
