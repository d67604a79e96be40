"""Arrays in files: `.npy`, `.npz`, numbers in `.csv` or `.txt`, and pictures."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.paths import replace_file

__all__ = ["FORMATS", "PICTURES", "check_output", "read_array", "write_array"]

FORMATS = (".npy", ".npz", ".csv", ".txt")
PICTURES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm")


def _check_format(path: Path, verb: str, formats: tuple[str, ...]) -> None:
    if path.suffix.lower() not in formats:
        raise InvalidProblem(f"cannot {verb} {path}: its name must end in {' '.join(formats)}")


def read_array(path: Path, formats: tuple[str, ...] = FORMATS) -> np.ndarray[Any, Any]:
    """Read one array of numbers.

    Parameters
    ----------
    path : Path
        ``.npy``; ``.npz`` with one array; ``.csv`` with commas, or ``.txt`` with
        white space. Text becomes int64 if every number is whole (uint64 if that
        takes it), else float64. Pictures become rows x columns, or rows x columns x
        3 or 4 colours, of uint8 or, for 16-bit grey, uint16.
    formats : tuple of str
        Endings to accept.

    Raises
    ------
    InvalidProblem
        If the file is missing, unreadable, of another format, not numeric, or
        holds Python objects.
    """
    _check_format(path, "read", formats)
    suffix = path.suffix.lower()
    try:
        if suffix in PICTURES:
            array = _read_picture(path)
        else:
            array = _read_text(path) if suffix in (".csv", ".txt") else _read_numpy(path)
    except OSError as error:
        raise InvalidProblem(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is damaged"
        raise InvalidProblem(f"cannot read {path}: {reason}") from error
    if array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{path} holds values of dtype {array.dtype}, not numbers")
    return array


def _read_numpy(path: Path) -> np.ndarray[Any, Any]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        if len(loaded.files) != 1:
            names = ", ".join(loaded.files) or "none"
            raise ValueError(f"it must hold exactly one array and holds: {names}")
        return np.asarray(loaded[loaded.files[0]])


def _read_text(path: Path) -> np.ndarray[Any, Any]:
    delimiter = "," if path.suffix.lower() == ".csv" else None
    with path.open(encoding="utf-8") as file:
        if not any(line.strip() for line in file):
            return np.empty(0)  # loadtxt would warn
    for dtype in (np.int64, np.uint64):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy would cut 1.5 to 1 with a warning
                return np.loadtxt(path, dtype=dtype, delimiter=delimiter, encoding="utf-8")
        except (ValueError, DeprecationWarning):
            continue
    return np.loadtxt(path, dtype=np.float64, delimiter=delimiter, encoding="utf-8")


def _read_picture(path: Path) -> np.ndarray[Any, Any]:
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.mode.startswith("I"):
                return np.asarray(image).astype(np.uint16)
            if image.mode not in ("L", "RGB", "RGBA"):
                clear = "A" in image.getbands() or "transparency" in image.info
                grey = image.mode in ("1", "LA") and not clear
                return np.asarray(image.convert("L" if grey else "RGBA" if clear else "RGB"))
            return np.asarray(image)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from error


def _write_picture(path: Path, suffix: str, array: np.ndarray[Any, Any]) -> None:
    """Write an image; a picture has no negative values, so it shows how large they are."""
    from PIL import Image

    coloured = array.ndim == 3 and array.shape[-1] in (3, 4)
    if not array.size or (array.ndim != 2 and not coloured):
        raise InvalidProblem(
            f"cannot write {path}: a picture has rows and columns, and 3 or 4 colours or none, "
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


def check_output(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Check early that `write_array` could write to `path`.

    Raises
    ------
    InvalidProblem
        If its format is unknown or its folder does not exist.
    """
    _check_format(path, "write", formats)
    if not path.parent.is_dir():
        raise InvalidProblem(f"cannot write {path}: the folder {path.parent} does not exist")


def write_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array in the format that the name of `path` says, all of it or nothing.

    Raises
    ------
    InvalidProblem
        If the format is unknown, or the file cannot be written.
    """
    check_output(path, (*FORMATS, *PICTURES))
    try:
        with replace_file(path) as temporary:
            if path.suffix.lower() in PICTURES:
                _write_picture(temporary, path.suffix.lower(), array)
            elif path.suffix.lower() == ".npy":
                np.save(temporary, array, allow_pickle=False)
            elif path.suffix.lower() == ".npz":
                np.savez(temporary, array)
            else:
                _write_text(temporary, array, "," if path.suffix.lower() == ".csv" else " ")
    except OSError as error:
        raise InvalidProblem(f"cannot write {path}: {error.strerror or error}") from error


def _write_text(path: Path, array: np.ndarray[Any, Any], delimiter: str) -> None:
    if array.ndim > 2:
        raise InvalidProblem(f"text files hold at most two dimensions, not {array.ndim}")
    digits = {4: "%.9g", 8: "%.17g"}.get(array.dtype.itemsize, "%.9g")
    np.savetxt(path, array, fmt=digits if array.dtype.kind == "f" else "%d", delimiter=delimiter)
