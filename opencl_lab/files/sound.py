"""Sound in `.wav` files."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_sound"]


def read_sound(path: Path) -> np.ndarray[Any, Any]:
    """Return samples from -1 to 1 as float32, a row a channel if there are several."""
    try:
        with wave.open(str(path), "rb") as file:
            channels, width = file.getnchannels(), file.getsampwidth()
            raw = np.frombuffer(file.readframes(file.getnframes()), np.uint8)
    except wave.Error as error:
        raise ValueError(f"{error}; only whole-number (PCM) samples can be read") from error
    if width == 1:  # bytes are unsigned, all others are signed
        samples = raw.astype(np.float32) / 128 - 1
    else:
        wide = np.zeros((raw.size // width, 4), np.uint8)  # the high bytes of 32 bits
        wide[:, 4 - width :] = raw[: raw.size // width * width].reshape(-1, width)
        samples = (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)
    rows = np.ascontiguousarray(samples.reshape(-1, channels).T)
    return rows[0] if channels == 1 else rows
