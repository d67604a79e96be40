"""Pictures, by way of Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_picture", "write_picture"]


def read_picture(path: Path) -> np.ndarray[Any, Any]:
    """Return rows x columns, or rows x columns x colours, of uint8 or, for 16-bit grey, uint16."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as stored:
            image = ImageOps.exif_transpose(stored)  # as a camera was held
            if image.mode.startswith("I"):
                return np.asarray(image).astype(np.uint16)
            if image.mode not in ("L", "RGB", "RGBA"):
                clear = "A" in image.getbands() or "transparency" in image.info
                grey = image.mode in ("1", "LA") and not clear
                return np.asarray(image.convert("L" if grey else "RGBA" if clear else "RGB"))
            return np.asarray(image)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from error


def write_picture(path: Path, suffix: str, array: np.ndarray[Any, Any]) -> None:
    """Write an image; a picture has no negative values, so it shows how large they are.

    Raises
    ------
    ValueError
        If the array is no picture.
    """
    from PIL import Image

    coloured = array.ndim == 3 and array.shape[-1] in (3, 4)
    if not array.size or (array.ndim != 2 and not coloured):
        raise ValueError(
            "a picture has rows and columns, and 3 or 4 colours or none, "
            f"not the shape {array.shape}"
        )
    if array.dtype not in (np.uint8, np.uint16):
        top = 255 if array.dtype.kind == "f" or coloured else 65535
        shown = np.rint(np.abs(np.nan_to_num(array.astype(np.float64)))).clip(0, top)
        array = shown.astype(np.uint8 if top == 255 else np.uint16)
    if array.dtype == np.uint16 and (coloured or suffix in (".jpg", ".jpeg")):
        array = (array >> 8).astype(np.uint8)
    if coloured and array.shape[-1] == 4 and suffix != ".png":
        array = array[..., :3]  # only PNG keeps opacity
    kind = {".png": "PNG", ".pgm": "PPM", ".ppm": "PPM"}.get(suffix, "JPEG")
    Image.fromarray(np.ascontiguousarray(array)).save(path, format=kind)
