"""What several tests of the DFT share."""

from __future__ import annotations

import wave

import numpy as np

BOUND = {"complex64": 1e-6, "complex128": 1e-14}


def random_signal(rng, shape, dtype="complex64"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


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
