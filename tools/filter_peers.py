"""Compare filters with those of other libraries for OpenCL and of scikit-image, in a table.

    pip install '.[pocl]' gputools silx scikit-image 'pyclesperanto[opencl]'
    python tools/filter_peers.py [--rounds R] [TEXT ...]

Of cases whose names have a text. Public calls of float32, by turns in one process: milliseconds of
ours, and how many times as long the others take, by least times. Arrays are device arrays where a
library takes such, input and output; those of silx's medians and of scikit-image are NumPy's. Away
from the edges, of which each library has its own idea, all results must be the same.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gputools
import numpy as np
import pyopencl as cl
import pyopencl.array
from gputools.convolve import median_filter
from silx.opencl.convolution import Convolution
from silx.opencl.medfilt import MedianFilter2D
from skimage import filters, morphology

from opencl_lab import ndimage
from opencl_lab.lab.measuring.back_to_back import back_to_back, calls_for

gputools.init_device(use_gpu=False)
# PoCL is loaded now, so that pyclesperanto finds it by its name.
os.environ.setdefault("OCL_ICD_VENDORS", str(Path(cl.__file__).parent / ".libs"))
import pyclesperanto as cle  # noqa: E402

PEERS = ("gputools", "silx", "pyclesperanto", "scikit-image")
IMAGES, VOLUMES = ((3000, 4000), (512, 512)), ((256, 256, 256),)
EDGE = 40  # values next to an edge, in which results may differ
SECONDS = 0.1  # of a round of one library
MOST = 5  # seconds after which a library takes no further turn
Calls = dict[str, Callable[[], Any]]


class Arrays:
    """The same numbers for all libraries, and places for results."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.host = np.random.default_rng(0).random(shape, np.float32)
        self.context = gputools.get_device().context
        self.queues = [cl.CommandQueue(self.context), gputools.get_device().queue]
        self.x = cl.array.to_device(self.queues[0], self.host)
        self.y = cl.array.empty_like(self.x)
        self.cle_x, self.cle_y = cle.push(self.host), cle.create(shape)

    def silx(self, weights: Any) -> Callable[[], Any]:
        """Return silx's call for weights; its kernels are built here."""
        convolution = Convolution(self.host.shape, weights.astype(np.float32), ctx=self.context)
        self.queues.append(convolution.queue)
        return partial(convolution, self.x, self.y)

    def finish(self) -> None:
        """Wait for all of them."""
        for queue in self.queues:
            queue.finish()


def gaussian(a: Arrays, sigma: float) -> Calls:
    """Return the calls that blur."""
    places = np.arange(-int(4 * sigma + 0.5), int(4 * sigma + 0.5) + 1)
    line = np.exp(-0.5 * (places / sigma) ** 2)
    return {
        "ours": partial(ndimage.gaussian_filter, a.x, sigma, output=a.y),
        "gputools": partial(gputools.gaussian_filter, a.x, sigma, res_g=a.y),
        "silx": a.silx(line / line.sum()),
        "pyclesperanto": partial(cle.gaussian_blur, a.cle_x, a.cle_y, sigma, sigma, sigma),
        "scikit-image": partial(filters.gaussian, a.host, sigma),
    }


def median(a: Arrays, size: int) -> Calls:
    """Return the calls for medians."""
    window = np.ones((size, size))
    return {
        "ours": partial(ndimage.median_filter, a.x, size, output=a.y),
        "gputools": partial(median_filter, a.x, size, res_g=a.y),
        "silx": partial(MedianFilter2D(a.host.shape, ctx=a.context), a.host, size),
        "pyclesperanto": partial(cle.median_box, a.cle_x, a.cle_y, size // 2, size // 2, 0),
        "scikit-image": partial(filters.median, a.host, window),
    }


def minimum(a: Arrays, size: int) -> Calls:
    """Return the calls for minima."""
    window = morphology.footprint_rectangle((size, size), decomposition="separable")
    return {
        "ours": partial(ndimage.minimum_filter, a.x, size, output=a.y),
        "gputools": partial(gputools.min_filter, a.x, size, res_g=a.y),
        "pyclesperanto": partial(cle.minimum_box, a.cle_x, a.cle_y, size // 2, size // 2, 0),
        "scikit-image": partial(morphology.erosion, a.host, window),
    }


def weights(a: Arrays, size: int) -> Calls:
    """Return the calls for a cube of weights."""
    cube = np.random.default_rng(1).random((size,) * 3, np.float32) / size**3
    theirs = cl.array.to_device(a.queues[0], cube)
    turned = cle.push(cube[::-1, ::-1, ::-1])  # pyclesperanto.convolve correlates
    return {
        "ours": partial(ndimage.convolve, a.x, cube, output=a.y),
        "gputools": partial(gputools.convolve, a.x, theirs, res_g=a.y),
        "silx": a.silx(cube),
        "pyclesperanto": partial(cle.convolve, a.cle_x, turned, a.cle_y),
    }


def lines(a: Arrays, size: int) -> Calls:
    """Return the calls for weights along all axes."""
    line = np.random.default_rng(1).random(size, np.float32) / size
    theirs = [cl.array.to_device(a.queues[0], line)] * 3

    def ours() -> Any:
        found = a.x
        for axis in range(3):
            found = ndimage.convolve1d(found, line, axis, output=a.y)
        return found

    return {
        "ours": ours,
        "gputools": partial(gputools.convolve_sep3, a.x, *theirs, res_g=a.y),
        "silx": a.silx(line),
    }


def cases() -> Iterator[tuple[str, tuple[int, ...], Callable[[Arrays], Calls]]]:
    """Yield names, shapes, and what returns the calls."""
    for shape in IMAGES:
        of = " x ".join(f"{size:,}" for size in shape)
        for sigma in (2, 5):
            yield f"gaussian, sigma {sigma}, {of}", shape, partial(gaussian, sigma=sigma)
        for size in (3, 5):
            yield f"median {size} x {size}, {of}", shape, partial(median, size=size)
        yield f"minimum 21 x 21, {of}", shape, partial(minimum, size=21)
    for shape in VOLUMES:
        for sigma in (2, 5):
            yield f"gaussian, sigma {sigma}, 256^3", shape, partial(gaussian, sigma=sigma)
        yield "5 x 5 x 5 weights, 256^3", shape, partial(weights, size=5)
        yield "15 weights along three axes, 256^3", shape, partial(lines, size=15)


def milliseconds(a: Arrays, calls: Calls, rounds: int) -> dict[str, float]:
    """Return the least time of each call over rounds in turns; raise if results differ."""
    inner, right, counts = (slice(EDGE, -EDGE),) * a.host.ndim, None, {}
    for name, call in calls.items():
        begin = time.perf_counter()
        found = call()
        a.finish()
        first = time.perf_counter() - begin  # builds programs
        found = np.asarray(found.get() if hasattr(found, "get") else found)[inner]
        right = found if right is None else right
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5, err_msg=name)
        once = first if first > MOST else back_to_back(call, 1, a.finish)[1]
        counts[name] = calls_for(SECONDS, once)
    times = dict.fromkeys(calls, np.inf)
    for turn in range(rounds):
        for name, call in calls.items():
            if turn and turn * times[name] > 1e3 * MOST:
                continue
            seconds = back_to_back(call, counts[name], a.finish)[1] / counts[name]
            times[name] = min(times[name], 1e3 * seconds)
    return times


def shown(number: float) -> str:
    """Return a number by two digits."""
    return f"{float(f'{number:.2g}'):,.{max(0, 1 - math.floor(math.log10(number)))}f}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="*", default=[""])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    cle.wait_for_kernel_to_finish()
    print("| filter | ms | " + " | ".join(f"{name} {version(name)}" for name in PEERS) + " |")
    print("|---|" + "--:|" * (1 + len(PEERS)), flush=True)
    for title, shape, calls_of in cases():
        if any(text in title for text in arguments.texts):
            arrays = Arrays(shape)
            times = milliseconds(arrays, calls_of(arrays), arguments.rounds)
            ratios = {name: shown(time / times["ours"]) for name, time in times.items()}
            figures = [shown(times["ours"]), *(ratios.get(name, "-") for name in PEERS)]
            print(f"| {title} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
