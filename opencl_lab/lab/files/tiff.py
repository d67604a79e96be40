"""Images and volumes in TIFF: with tifffile where it is installed, else with Pillow."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.wording import listed
from opencl_lab.lab.files.media import in_colours, opened_picture

PILLOW_MODES = ("1", "L", "I", "I;16", "I;16B", "F", "RGB", "RGBA")
"""Modes of Pillow that hold the numbers of a file as they are, if its bits do."""
CONVERTED_MODES = ("P", "PA", "LA", "CMYK", "YCbCr")
"""Modes whose numbers are no colours yet, or grey with opacity."""
PILLOW_TYPES = ("uint8", "uint16", "int32", "float32")
"""Types that Pillow writes; colours are of the first one."""
INSTALL = "`pip install tifffile`, which is then used,"


def _has_tifffile() -> bool:
    return find_spec("tifffile") is not None


def _advice() -> str:
    return "save it as .npy" if _has_tifffile() else f"{INSTALL} or save it as .npy"


def read_tiff(path: Path) -> np.ndarray[Any, Any]:
    """Return rows x columns, with pages before and colours after them if there are several.

    ValueError is raised for pages of several sizes, and for what only tifffile reads.
    """
    if not _has_tifffile():
        return _read_by_pillow(path)
    import tifffile  # type: ignore[import-not-found,unused-ignore]

    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        if len(file.series) > 1:
            raise ValueError(f"it holds {len(file.series)} images of several sizes; save one")
        colours = series.axes.find("S")  # which may come first
        plain = colours < 0 or series.shape[colours] in (3, 4)
        if not plain or series.keyframe.photometric not in (1, 2):  # white is 0, palettes, inks
            return _read_by_pillow(path)
        try:
            array = np.asarray(series.asarray())
        except ValueError as error:
            if "imagecodecs" not in str(error):
                raise
            return _read_by_pillow(path)
    return array if colours < 0 else np.moveaxis(array, colours, -1)


def _read_by_pillow(path: Path) -> np.ndarray[Any, Any]:
    from PIL import ImageSequence

    pages = []
    with opened_picture(path, ("TIFF",), f" that Pillow reads: {_advice()}") as file:
        for page in ImageSequence.Iterator(file):
            tags: Any = page.tag_v2  # type: ignore[attr-defined]
            bits, kinds = tags.get(258, (1,)), tags.get(339, (1,))
            whole, signed = page.mode == "I", kinds[0] == 2
            most = 32 if len(bits) == 1 else 8
            if page.mode in CONVERTED_MODES and max(bits) <= 8:
                pages.append(in_colours(page))
                continue
            if page.mode not in PILLOW_MODES or signed != whole or max(bits) > most:
                raise ValueError(
                    f"Pillow does not read its numbers of {max(bits)} bits (mode {page.mode}) as "
                    f"they are: {_advice()}"
                )
            array = np.asarray(page)
            pages.append(array.astype(np.int16) if signed and max(bits) == 16 else array)
    if len({page.shape for page in pages}) > 1:
        raise ValueError("it holds images of several sizes; save one")
    return pages[0] if len(pages) == 1 else np.stack(pages)


def check_tiff(array: np.ndarray[Any, Any]) -> None:
    """Raise ValueError if `write_tiff` cannot write an array of this shape and type."""
    if not array.size or not 2 <= array.ndim <= 3 + _is_coloured(array):
        raise ValueError(
            "a TIFF file has rows and columns, pages before them or none, and 3 or 4 colours or "
            f"none, not the shape {array.shape}; .npy holds any"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"a TIFF file holds no {array.dtype}; .npy does")
    able = PILLOW_TYPES[: 1 if _is_coloured(array) else None]
    if not _has_tifffile() and _stored(array).dtype.name not in able:
        what = "colours of" if _is_coloured(array) else "numbers of"
        raise ValueError(
            f"Pillow writes {what} {listed(able)}, not {array.dtype}: {INSTALL} or write .npy"
        )


def _is_coloured(array: np.ndarray[Any, Any]) -> bool:
    return array.ndim > 2 and array.shape[-1] in (3, 4)


def _stored(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def write_tiff(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array that passes `check_tiff`, with its values and its type."""
    check_tiff(array)
    array = np.ascontiguousarray(_stored(array))
    coloured = _is_coloured(array)
    if _has_tifffile():
        import tifffile

        tifffile.imwrite(path, array, photometric="rgb" if coloured else "minisblack")
        return
    from PIL import Image

    pages = array.reshape(-1, *array.shape[array.ndim - 2 - coloured :])
    first, *others = map(Image.fromarray, pages)
    first.save(path, format="TIFF", save_all=True, append_images=others)
