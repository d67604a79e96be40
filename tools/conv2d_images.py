"""Compare what `auto` takes for a convolution with register and fft, on images of several kinds.

    python tools/conv2d_images.py "NVIDIA H100" > docs/data/conv2d_images_h100.csv

Transforms are less accurate than direct sums where dark places lie beside bright ones, and what
they spoil is summed again. So their time depends on the image: noise between 0 and 1, noise around
0, faint noise with stars, and a smooth one. Filters have weights between 0 and 1, or of both signs.
Arrays are on the device if that is a GPU, else NumPy's. All algorithms take turns in one process;
the figures are medians of the turns.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
import warnings
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from fft_calls import Side, medians

import opencl_lab as ol

SHAPES = (1024, 1024), (2000, 3000)
TAPS = (15, 23, 31, 47, 63)
ALGORITHMS = ("auto", "register", "fft")


def images(shape: tuple[int, int], rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield images in float32, and what to call them."""
    yield "uniform", rng.random(shape, np.float32)
    normal = rng.standard_normal(shape, np.float32)
    yield "normal", normal
    bright = rng.random(shape, np.float32) < 1 / 2000
    yield "stars", np.abs(normal) + bright * rng.uniform(0, 1e4, shape).astype(np.float32)
    smooth = normal.cumsum(0).cumsum(1)
    yield "smooth", ((smooth - smooth.min()) / np.ptp(smooth)).astype(np.float32)


def filters(taps: int, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield filters in float32, and what to call them."""
    yield "positive", rng.random((taps, taps), np.float32)
    yield "both signs", rng.standard_normal((taps, taps), np.float32)


def sides(image: Any, weights: Any, gpu: bool) -> dict[str, Side]:
    """Return a call of each algorithm, and how to wait for it."""
    if not gpu:
        out = np.empty_like(image)
        call = partial(ol.conv2d, image, weights, out=out)
        return {name: (partial(call, algorithm=name), lambda: None) for name in ALGORITHMS}
    import pyopencl.array as cla

    queue = ol.select_device().queue()
    there = cla.to_device(queue, image)
    call = partial(ol.conv2d, there, weights, out=cla.empty_like(there))
    return {name: (partial(call, algorithm=name), queue.finish) for name in ALGORITHMS}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("title", help="what the file calls the device")
    title = parser.parse_args().title
    warnings.simplefilter("ignore")  # no GPU, which the command says itself
    gpu = ol.select_device().kind == "gpu"
    print(ol.select_device(), file=sys.stderr)
    rng, rows = np.random.default_rng(0), []
    for shape in SHAPES:
        for taps in TAPS:
            for signs, weights in filters(taps, rng):
                for kind, image in images(shape, rng):
                    times = medians(sides(image, weights, gpu), 0.0)
                    label = f"{shape[0]:,} x {shape[1]:,} by {taps} x {taps}, {kind}, {signs}"
                    rows.append((label, times))
                    said = ", ".join(f"{name} {ms:.4g}" for name, ms in times.items())
                    print(f"{label}: {said}", file=sys.stderr, flush=True)
    where = "arrays on the device, calls in a row" if gpu else "NumPy arrays"
    head = {
        "device": title,
        "date": date.today().isoformat(),
        "method": f"Public calls, {where}, all algorithms by turns in one process; medians",
        "command": shlex.join(["python", "tools/conv2d_images.py", *sys.argv[1:]]),
        "compared": "; ".join(f"{name} ms" for name in ALGORITHMS),
    }
    for key, value in head.items():
        print(f"# {key}: {value}")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["image and filter", *(f"{name} ms" for name in ALGORITHMS)])
    for label, times in rows:
        writer.writerow([label, *(f"{times[name]:.3g}" for name in ALGORITHMS)])


if __name__ == "__main__":
    main()
