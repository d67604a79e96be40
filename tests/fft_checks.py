"""What several tests of the FFT share: forms, bounds, and the check of one problem."""

from __future__ import annotations

import math
import wave

import numpy as np

from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.passes.forms import planner_for

FFT = DFT.algorithm("fft")
BOUND = {"complex64": 1e-6, "complex128": 1e-14}  # of direct sums
EPS = {"complex64": 2.0**-24, "complex128": 2.0**-53}
GROUPS = {"FORM": "local-memory", "POINTS": 8, "MAX_RADIX": 8, "WG_SIZE": 16, "TRANSFORMS": 4}


def bound(n, dtype="complex64"):
    """Twice what a good FFT may lose: a few roundings for each doubling of the length."""
    return EPS[np.dtype(dtype).name] * (1.0 + 0.6 * math.log2(max(n, 2)))


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / max(np.linalg.norm(expected), 1e-300)


def check(problem, config=None, seed=3):
    inputs = DFT.generate(problem, seed)
    expected = DFT.expected(problem, inputs)["spectrum"]
    run = DFT.run(problem, inputs, algorithm="fft", config=config, queue=select_device().queue())
    actual = run.outputs["spectrum"]
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    # Bluestein's convolution is three transforms of more than twice the length.
    form = None if config is None else config.get("FORM")
    passes = planner_for(select_device(), form).has_passes(problem.n, problem.count)
    size = problem.n if passes else 64 * problem.n
    assert relative(actual, expected) <= 2 * bound(size, problem.dtype)


def random_signal(rng, shape, dtype="complex64"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def write_tone(path, channels=1, width=2, n=2000, cycles=(50, 300)):
    top = {1: 127, 2: 2**15 - 1, 3: 2**23 - 1, 4: 2**31 - 1}[width]
    time = np.arange(n) / n
    tones = [0.8 * np.sin(2 * np.pi * f * time) for f in cycles[:channels]]
    samples = np.round(np.stack(tones, -1) * top).astype("<i4")
    if width == 1:
        raw = (samples + 128).astype(np.uint8).tobytes()
    else:
        raw = samples.reshape(-1, 1).view(np.uint8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(raw)
