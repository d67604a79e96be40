"""Compare both sides of a CPU device, what `auto` chooses, and another library, at small sizes.

    python tools/small_calls.py [OPERATION ...] [--repeats R] [--csv FILE]

For each problem: microseconds of a public call on NumPy arrays in the calling thread, on all
threads, and as `auto` chooses, and of the same call of NumPy, SciPy or OpenCV; least of R rounds in
turns. Then `auto` over the better side, and the library over `auto`. The last line counts the
problems on which `auto` is more than 10 % slower than the better side.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
import scipy.ndimage

import opencl_lab as ol
from opencl_lab.lab.measuring.back_to_back import back_to_back

SECONDS = 0.004  # of a round of one call
SLOWER = 1.1
Call = Callable[..., Any]
Case = tuple[str, Call, Call]

try:
    import cv2
except ImportError:
    cv2 = None


def _sorts(rng: np.random.Generator) -> Iterator[Case]:
    for dtype in ("int32", "float64", "uint8"):
        for n in (100, 1000, 3000, 10_000, 20_000, 50_000, 100_000):
            keys = _keys(rng, n, dtype)
            yield f"sort {n:,} {dtype}", partial(ol.sort, keys), partial(np.sort, keys)
    for n in (100, 1000, 10_000, 50_000):
        keys = _keys(rng, n, "int32")
        stable = partial(np.argsort, keys, kind="stable")
        yield f"argsort {n:,} int32", partial(ol.argsort, keys), stable
        yield f"sort_by_key {n:,} int32", partial(ol.sort_by_key, keys, keys), stable
    for shape in ((10, 100), (100, 64), (1000, 64), (100, 1000)):
        keys = _keys(rng, shape, "int32")
        yield _title("sort", shape, keys), partial(ol.sort, keys), partial(np.sort, keys)


def _gemms(rng: np.random.Generator) -> Iterator[Case]:
    sizes = [(n, n, n) for n in (8, 16, 32, 64, 96, 128, 160, 192, 256, 384)]
    thin = [(1, 512, 512), (512, 1, 512), (16, 256, 256), (256, 256, 8), (8, 8, 4096)]
    for dtype in ("float32", "float64", "complex64"):
        for m, n, k in sizes + thin * (dtype == "float32"):
            a, b = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
            yield _title("gemm", (m, n, k), a), partial(ol.gemm, a, b), partial(np.matmul, a, b)
    for count, n in ((10, 16), (100, 16), (100, 32)):
        a, b = (rng.random((count, n, n), np.float32) for _ in range(2))
        yield _title("gemm", a.shape, a), partial(ol.gemm, a, b), partial(np.matmul, a, b)


def _filters(rng: np.random.Generator) -> Iterator[Case]:
    for k in (3, 5, 7, 15):
        for n in (16, 64, 128, 256, 512):
            image, weights = rng.random((n, n), np.float32), rng.random((k, k), np.float32)
            ours = partial(ol.conv2d, image, weights)
            if cv2 is None:
                peer = partial(scipy.ndimage.correlate, image, weights, mode="constant")
            else:
                peer = partial(cv2.filter2D, image, -1, weights, borderType=cv2.BORDER_CONSTANT)
            yield f"conv2d {n} x {n} by {k} x {k}", ours, peer


def _transforms(rng: np.random.Generator) -> Iterator[Case]:
    rows = [(n,) for n in (64, 256, 1000, 1024, 4096, 10_000, 16_384, 65_536, 1 << 18)]
    batches = [(10, 64), (100, 64), (1024, 64), (10, 256), (100, 256), (1024, 256)]
    for dtype in ("complex64", "complex128"):
        for shape in [*rows, *batches]:
            x = rng.random(shape).astype(dtype)
            yield _title("fft", shape, x), partial(ol.fft.fft, x), partial(scipy.fft.fft, x)
    for n in (256, 1024, 4096, 16_384, 65_536):
        x = rng.random(n, np.float32)
        yield f"rfft {n:,} float32", partial(ol.fft.rfft, x), partial(scipy.fft.rfft, x)
    for n in (16, 64, 128, 256):
        x = rng.random((n, n)).astype(np.complex64)
        yield _title("fft2", x.shape, x), partial(ol.fft.fft2, x), partial(scipy.fft.fft2, x)
    for n in (17, 64, 200, 1000):
        x = rng.random(n).astype(np.complex64)
        yield f"dft {n:,} complex64", partial(ol.dft, x), partial(scipy.fft.fft, x)


def _selections(rng: np.random.Generator) -> Iterator[Case]:
    for n in (100, 1000, 10_000, 50_000, 100_000):
        keys = _keys(rng, n, "int32")
        repeated, ascending = keys % 1000, np.sort(keys)
        yield f"topk 10 of {n:,} int32", partial(ol.topk, keys, 10), partial(_topk, keys, 10)
        yield f"unique {n:,} int32", partial(ol.unique, repeated), partial(np.unique, repeated)
        ours = partial(ol.searchsorted, ascending, keys)
        yield f"searchsorted {n:,} int32", ours, partial(np.searchsorted, ascending, keys)


def _topk(keys: Any, k: int) -> tuple[Any, Any]:
    """Return what `ol.topk` returns, by NumPy's quickest way."""
    places = np.argpartition(keys, len(keys) - k)[len(keys) - k :]
    places = places[np.argsort(-keys[places], kind="stable")]
    return keys[places], places


def _keys(rng: np.random.Generator, shape: Any, dtype: str) -> Any:
    if dtype.startswith("float"):
        return rng.random(shape).astype(dtype)
    return rng.integers(0, min(1 << 30, np.iinfo(dtype).max), shape).astype(dtype)


def _title(name: str, shape: Sequence[int], array: Any) -> str:
    return f"{name} {' x '.join(f'{n:,}' for n in shape)} {array.dtype}"


SWEEPS = {
    "sort": _sorts,
    "gemm": _gemms,
    "conv2d": _filters,
    "fft": _transforms,
    "select": _selections,
}


def _seconds(call: Call, calls: int) -> float:
    _, seconds = back_to_back(call, calls)
    return seconds / calls


def _least_us(ways: Sequence[Call], repeats: int) -> list[float]:
    """Return the least time of each call over rounds in turns."""
    counts = []
    for way in ways:
        _seconds(way, 5)  # the first ones build, and find out how memory is shared
        counts.append(max(1, int(SECONDS / _seconds(way, 2))))
    rounds = [list(map(_seconds, ways, counts)) for _ in range(repeats)]
    return [1e6 * min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operations", nargs="*", default=list(SWEEPS), metavar="OPERATION")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    threads = ol.select_device("cpu")
    serial = threads.serial_side
    if serial is None:
        sys.exit(f"{threads} has no serial side")
    print(f"{threads}, {threads.compute_units} units")
    names = ("serial", "threads", "auto", "library", "auto/better", "library/auto")
    print(f"{'call':32}" + "".join(f"{name:>13}" for name in names))
    rows = []
    sides: list[dict[str, Any]] = [{"device": serial}, {"queue": threads.queue()}, {}]
    for name in options.operations:
        for title, call, peer in SWEEPS[name](np.random.default_rng(1)):
            ways = [*(partial(call, **side) for side in sides), peer]
            alone, together, auto, other = _least_us(ways, options.repeats)
            row = (alone, together, auto, other, auto / min(alone, together), other / auto)
            rows.append((title, *row))
            figures = "".join(f"{figure:13.{1 if at < 4 else 2}f}" for at, figure in enumerate(row))
            print(f"{title:32}{figures}{' *' * (row[4] > SLOWER)}", flush=True)
    slower = sum(row[5] > SLOWER for row in rows)
    print(f"auto is more than 10 % slower than the better side on {slower} of {len(rows)}")
    if options.csv is not None:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("call", *names), *rows])


if __name__ == "__main__":
    main()
