"""Pictures, read and written with Pillow, and sound in `.wav` files."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.wording import counted

PICTURE_FORMATS = ("PNG", "JPEG", "PPM", "WEBP", "GIF", "BMP")
"""Of images that are read, whatever their names: many on the web are called .jpg."""
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
ENCODINGS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 17: "IMA ADPCM", 85: "MP3"}
STREAMED = 0x7FFFF000
"""Programs that do not know the length in advance write sizes from here on."""


@contextmanager
def opened_picture(
    path: Path, formats: tuple[str, ...] = PICTURE_FORMATS, advice: str = ""
) -> Iterator[Any]:
    """Yield an image of Pillow, whose warnings are not shown, in one of some formats.

    ValueError is raised for others, with advice: Pillow would read any, and some by running other
    programs.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # of images that it reads
            yield stack.enter_context(Image.open(path, formats=formats))
    except UnidentifiedImageError as error:
        known = ", ".join(formats)
        raise ValueError(f"it is no image in one of the formats {known}{advice}") from error
    except Image.DecompressionBombError as error:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise ValueError(f"it has more than {most:,} pixels; save it as .npy") from error


def read_picture(path: Path) -> np.ndarray[Any, Any]:
    """Return rows x columns, or rows x columns x colours, of uint8 or, for 16-bit grey, uint16.

    ValueError is raised for colours of 16 bits, of which Pillow reads 8.
    """
    from PIL import ImageOps

    with opened_picture(path) as stored:
        if not stored.mode.startswith("I") and _is_deep(stored.tile):
            raise ValueError("its colours have 16 bits; save it with 8, or as .npy")
        image = ImageOps.exif_transpose(stored)  # in the orientation of the camera
        if image.mode.startswith("I"):
            return np.asarray(image).astype(np.uint16)
        return in_colours(image)


def in_colours(image: Any) -> np.ndarray[Any, Any]:
    """Return an image of 8 bits or fewer as grey values, RGB or, with opacity, RGBA."""
    if image.mode not in ("L", "RGB", "RGBA"):
        clear = "A" in image.getbands() or "transparency" in image.info
        grey = image.mode == "1" and not clear
        image = image.convert("L" if grey else "RGBA" if clear else "RGB")
    return np.asarray(image)


def _is_deep(tiles: list[Any]) -> bool:
    """Return whether values have more than 8 bits in the file, by Pillow's modes and maxima."""
    parts = [part for *_, how in tiles for part in (how if isinstance(how, tuple) else (how,))]
    return any(
        ";16" in part if isinstance(part, str) else isinstance(part, int) and part > 255
        for part in parts
    )


def _white(image: np.ndarray[Any, Any]) -> int:
    """Return the value of white: the largest of an integer type, or else 1, 255 or 65535."""
    if image.dtype == np.uint8:
        return 255
    if image.dtype in (np.uint16, np.int16):
        return 65535
    finite = image[np.isfinite(image)]
    largest = max(abs(float(finite.max())), abs(float(finite.min()))) if finite.size else 0.0
    for white in (1, 255, 65535) if image.dtype.kind in "bf" else (255, 65535):
        if largest <= white:
            return white
    raise ValueError(
        f"its values reach {largest:.6g}, but white is 1, 255 or 65535 in a picture: scale the "
        "image, or write .npy"
    )


def check_picture(array: np.ndarray[Any, Any], like: np.ndarray[Any, Any] | None = None) -> None:
    """Raise ValueError if an array is not an image, or the value of white in `like` is unknown."""
    if not array.size or (array.ndim != 2 and not _is_coloured(array)):
        raise ValueError(
            "a picture has rows and columns, and 3 or 4 colours or none, "
            f"not the shape {array.shape}: .tif and .npy hold volumes"
        )
    _white(array if like is None else like)


def _is_coloured(array: np.ndarray[Any, Any]) -> bool:
    return array.ndim == 3 and array.shape[-1] in (3, 4)


def write_picture(
    path: Path, suffix: str, array: np.ndarray[Any, Any], like: np.ndarray[Any, Any] | None = None
) -> None:
    """Write an array that passes `check_picture`, as an image of magnitudes.

    `like`, the image that it was made from (default: itself), determines the value of white: 255
    for uint8, 65535 for 16-bit integers; for others the first of 1 (floating point only), 255 and
    65535 that no value exceeds. If it is 65535, PNG and PGM images without colours are written in
    16 bits, all others in 8.
    """
    from PIL import Image

    check_picture(array, like)
    coloured = _is_coloured(array)
    white = _white(array if like is None else like)
    deep = white == 65535 and not coloured and suffix in (".png", ".pgm")
    top, dtype = (65535, np.uint16) if deep else (255, np.uint8)
    if array.dtype != dtype or white != top:
        shown = np.abs(np.nan_to_num(array.astype(np.float64))) * (top / white)
        array = np.rint(shown).clip(0, top).astype(dtype)
    if coloured and array.shape[-1] == 4:
        if suffix != ".png":  # only PNG keeps opacity
            array = array[..., :3]
        elif (array[..., 0] == array[..., 1]).all() and (array[..., 0] == array[..., 2]).all():
            array = array[..., 2:]  # grey and opacity, as it may have been read
    kind = {".png": "PNG", ".pgm": "PPM", ".ppm": "PPM"}.get(suffix, "JPEG")
    Image.fromarray(np.ascontiguousarray(array)).save(path, format=kind)


# ---------------------------------------------------------------------- sound


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
