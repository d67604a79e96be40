"""Kernels of opencl_lab on the blocks of a Dask array, beside the same blocks in NumPy.

    pip install 'dask[array]'
    python docs/examples/dask_blocks.py 4096

Dask cuts the array into blocks of rows and calls the functions in threads, here those of one
process. A block is a NumPy array, and so is its result; calls in several threads share the device
safely. The blocks of signals become spectra, and then the loudest frequencies of each signal.
"""

import sys
import time

import dask.array as da
import numpy as np

import opencl_lab as ol

LENGTH, BLOCK, LOUDEST = 4096, 512, 8


def spectra(block):
    """Return the power of the frequencies of each row."""
    return np.abs(ol.fft.rfft(block)) ** 2


def loudest(block):
    """Return the frequencies with the most power, the loudest first."""
    return ol.topk(block, LOUDEST)[1]


def by_numpy(block):
    """Return the same by NumPy, which is slower."""
    power = np.abs(np.fft.rfft(block)) ** 2
    return np.argsort(-power, axis=-1, kind="stable")[:, :LOUDEST]


def signals(rows):
    """Return rows of noise, each with tones at a few frequencies."""
    rng = np.random.default_rng(0)
    tones = rng.integers(1, LENGTH // 2, (rows, LOUDEST))
    heights = np.arange(LOUDEST, 0, -1) + 4
    lines = np.zeros((rows, LENGTH // 2 + 1), np.complex64)
    np.put_along_axis(lines, tones, heights * LENGTH / 8, axis=1)
    noise = rng.standard_normal((rows, LENGTH), np.float32)
    return da.from_array(np.fft.irfft(lines, axis=-1).astype(np.float32) + noise, (BLOCK, LENGTH))


def timed(array):
    """Compute an array in threads; return it and the seconds of the second time."""
    array.compute(scheduler="threads")  # compiles kernels
    begin = time.perf_counter()
    found = array.compute(scheduler="threads")
    return found, time.perf_counter() - begin


def main(rows):
    """Print how long both take; raise if they find other frequencies."""
    x = signals(rows)
    power = x.map_blocks(spectra, dtype=np.float32, chunks=(x.chunks[0], (LENGTH // 2 + 1,)))
    chunks = (x.chunks[0], (LOUDEST,))
    ours, seconds = timed(power.map_blocks(loudest, dtype=np.int64, chunks=chunks))
    right, longer = timed(x.map_blocks(by_numpy, dtype=np.int64, chunks=chunks))
    same = np.mean(ours == right)  # powers within rounding may change places
    assert same > 0.999, same
    print(f"{x.numblocks[0]} blocks of {BLOCK} x {LENGTH}: the same frequencies")
    print(f"opencl_lab {1e3 * seconds:.0f} ms, NumPy {1e3 * longer:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
