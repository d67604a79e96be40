"""Sound in `.wav` files: integer or floating-point samples, with any number of channels."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.wording import counted

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
ENCODINGS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 17: "IMA ADPCM", 85: "MP3"}
STREAMED = 0x7FFFF000
"""Programs that do not know the length in advance write sizes from here on."""


def read_sound(path: Path) -> tuple[np.ndarray[Any, Any], int]:
    """Return the samples of a RIFF WAVE file, and their number per second.

    Integers become float32 from -1 to 1; floating point stays float32 or float64. Several channels
    are rows. ValueError is raised for a truncated or compressed file.
    """
    content = path.read_bytes()
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise ValueError("it is no RIFF WAVE file")
    chunks = _chunks(content)
    if b"fmt " not in chunks or b"data" not in chunks:
        raise ValueError("it is cut off: it has no samples")
    try:
        form, channels, rate, _, frame = struct.unpack_from("<HHIIH", chunks[b"fmt "])
        if form == EXTENSIBLE:  # then the format is the first number of a GUID
            (form,) = struct.unpack_from("<H", chunks[b"fmt "], 24)
    except struct.error as error:
        raise ValueError(f"it is damaged: {error}") from error
    if not channels or not rate or not frame or frame % channels:
        raise ValueError(
            f"it is damaged: {counted(channels, 'channel')} in {counted(frame, 'byte')}, "
            f"{counted(rate, 'time')} a second"
        )
    data = chunks[b"data"]
    samples = _samples(data[: len(data) // frame * frame], form, frame // channels)
    rows = np.ascontiguousarray(samples.reshape(-1, channels).T)
    return (rows[0] if channels == 1 else rows), rate


def _chunks(content: bytes) -> dict[bytes, memoryview]:
    """Return the first chunk of each name, up to the description and the samples."""
    found: dict[bytes, memoryview] = {}
    (form,) = struct.unpack_from("<I", content, 4)
    at = 12
    while at + 8 <= len(content) and not {b"fmt ", b"data"} <= found.keys():
        name, size = struct.unpack_from("<4sI", content, at)
        at += 8
        left = len(content) - at
        # A recorder that was stopped has written no sizes, or those of a form without samples.
        if name == b"data" and not size and (form == 0 or 8 + form <= at):
            size = left
        if size > left and size < STREAMED:
            raise ValueError(f"it is cut off: {size} bytes are announced, and {left} are there")
        found.setdefault(name, memoryview(content)[at : at + size])
        at += size + size % 2  # chunks begin at even offsets
    return found


def _samples(data: memoryview, form: int, width: int) -> np.ndarray[Any, Any]:
    """Return samples of `width` bytes each."""
    if form == FLOAT and width in (4, 8):
        return np.frombuffer(data, f"<f{width}").astype(f"f{width}")
    if form != PCM or width not in (1, 2, 3, 4):
        what = ENCODINGS.get(form, f"of format {form}")
        raise ValueError(
            f"its samples are {what}, {8 * width} bits each; those that can be read are PCM "
            "of 8 to 32 bits and floating point of 32 or 64"
        )
    raw = np.frombuffer(data, np.uint8)
    if width == 1:  # bytes are unsigned, others are signed
        return (raw.astype(np.float32) - 128) / 128
    wide = np.zeros((raw.size // width, 4), np.uint8)  # the high bytes of 32 bits
    wide[:, 4 - width :] = raw.reshape(-1, width)
    return (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)
