"""Reading and writing a user's arrays in files: `.npy`, `.npz`, text, sound, images, volumes."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.npy import Header, opened, read_header
from opencl_lab.core.paths import check_target, write_target
from opencl_lab.core.wording import counted, listed, visible
from opencl_lab.lab.files.blocks import NpyFile, check_numbers, scratch_file
from opencl_lab.lab.files.media import check_picture, read_picture, read_sound, write_picture
from opencl_lab.lab.files.source import DEVICE, STDIN, STDOUT, split_part, standard_input
from opencl_lab.lab.files.text import check_text, read_columns, read_text, write_columns, write_text
from opencl_lab.lab.files.tiff import check_tiff, read_tiff, write_tiff

__all__ = [
    "FORMATS",
    "PICTURES",
    "SOUNDS",
    "STDIN",
    "STDOUT",
    "TIFFS",
    "NpyFile",
    "Stored",
    "check_array",
    "check_output",
    "convert",
    "is_rounded",
    "is_text",
    "read_array",
    "read_stored",
    "scratch_file",
    "split_part",
    "summary",
    "write_array",
]

NUMPY = (".npy", ".npz")
FORMATS = (*NUMPY, ".csv", ".txt")
PICTURES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm")
TIFFS = (".tif", ".tiff")
SOUNDS = (".wav",)  # only read
BLOCK = 1 << 16  # bytes that are read at once
TEXTS = {".csv": ",", ".txt": " "}
PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK": "zip",
}
"""The first bytes of compressed files, and the programs that make them."""

NOTHING: Mapping[str, np.ndarray[Any, Any]] = MappingProxyType({})

Columns: TypeAlias = Callable[[], Mapping[str, np.ndarray[Any, Any]] | None]
"""Returns the columns of a text file by name, as real numbers; None to write the array itself."""


@dataclass(frozen=True)
class Stored:
    """The content of a file: its array, and values of options."""

    array: np.ndarray[Any, Any]
    options: Mapping[str, Any] = field(default_factory=dict)  # values by the names of options
    names: tuple[str, ...] = ()  # of the columns, if a text file begins with names
    of_text: bool = False


def _suffix(path: Path) -> str:
    """Return the format of a file by its name; what is printed is like a ``.csv`` file."""
    return ".csv" if path == Path(STDOUT) else path.suffix.lower()


def _check_format(path: Path, verb: str, formats: tuple[str, ...], shown: str = "") -> None:
    if _suffix(path) not in formats:
        endings = " ".join(formats)
        must = f"it must hold one of {endings}" if shown else f"its name must end in {endings}"
        raise InvalidProblem(f"cannot {verb} {shown or path}: {must}")


def read_array(
    name: str | Path, formats: tuple[str, ...] = FORMATS, rounded: bool | None = None
) -> np.ndarray[Any, Any]:
    """Return the array of `read_stored`."""
    return read_stored(name, formats, rounded).array


def read_stored(
    name: str | Path, formats: tuple[str, ...] = FORMATS, rounded: bool | None = None
) -> Stored:
    """Read an array of numbers, and values of options from a file.

    `name` is a file whose name ends in one of `formats`, ``data.npz:member``, or
    ``table.csv:column,column``. The text ``-`` is standard input, like ``/dev/stdin`` and
    ``/dev/stdin:column``; its format is detected. See `read_text`, `read_picture` and `read_sound`
    for the shapes and types of arrays; sound also has the option ``rate``, samples per second.
    `rounded` is whether whole numbers of text may be rounded to float64; None: not, and the user
    has no `dtype` to say so. `InvalidProblem` is raised for files that are missing, unreadable, of
    another format, not numeric, or contain Python objects.
    """
    file, part = split_part(name, formats)
    if file == DEVICE or name == STDIN:
        return _read(standard_input(), part, formats, rounded, DEVICE)
    return _read(Path(file), part, formats, rounded)


def _read(
    path: Path, part: str, formats: tuple[str, ...], rounded: bool | None, shown: str = ""
) -> Stored:
    """Read a file, or a named array in it; `shown` is its name in messages."""
    _check_format(path, "read", formats, shown)
    suffix, shown = _suffix(path), shown or str(path)
    options: dict[str, Any] = {}
    names: tuple[str, ...] = ()
    try:
        if suffix in TEXTS:
            table = read_columns(path, part, rounded) if part else read_text(path, rounded)
            array, names = table.numbers, table.names
        elif not path.stat().st_size:
            raise ValueError("it is empty")
        elif suffix in NUMPY and _begins_as_archive(path):
            array = _read_member(path, part, shown)
        elif suffix in NUMPY:
            with opened(path, shown) as (file, header):
                array = _read_elements(file, header, shown)
            if part:
                raise ValueError(f"it holds a single array without a name, and no {part!r}")
        elif part:
            raise ValueError(f"it has no parts with names, such as {part!r}")
        elif suffix in PICTURES:
            array = read_picture(path)
        elif suffix in TIFFS:
            array = read_tiff(path)
        else:
            array, options["rate"] = read_sound(path)
    except InvalidProblem:
        raise
    except OSError as error:
        raise InvalidProblem(f"cannot read {shown}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        reason = _undecodable(path) if suffix in TEXTS else "it is damaged"
        raise InvalidProblem(f"cannot read {shown}: {reason}") from error
    except (ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is damaged"
        raise InvalidProblem(f"cannot read {shown}: {reason}") from error
    except Exception as error:  # a damaged file may raise errors in zipfile, zlib, tokenize, ...
        raise InvalidProblem(f"cannot read {shown}: it is damaged ({error})") from error
    return Stored(array, options, names, suffix in TEXTS)


def convert(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return `array` as `dtype`, without changing values except by rounding to a floating type.

    InvalidProblem is raised for values out of range, for fractions or NaN converted to integers,
    and for complex numbers converted to real ones.
    """
    target = np.dtype(dtype)
    kind = array.dtype.kind
    if kind == "c" and target.kind != "c":
        raise InvalidProblem(f"cannot convert complex numbers to {target}")
    with np.errstate(all="ignore"):
        converted = array.astype(target, copy=False)
        if target.kind in "fc":
            lost = np.isfinite(array) & ~np.isfinite(converted)
        elif target.kind == "b":
            lost = converted != array
        else:
            limits = np.iinfo(target)
            if kind == "f":
                low, high = np.float64(limits.min), np.float64(limits.max + 1)
                lost = ~((array >= low) & (array < high) & (array == np.trunc(array)))
            else:
                lost = (array < limits.min) | (array > limits.max)
    if lost.any():
        raise InvalidProblem(
            f"the value {array[lost][0]} cannot be converted to {target} "
            f"({np.count_nonzero(lost)} such); leave --dtype out, or take another"
        )
    return converted


def is_rounded(dtype: object) -> bool:
    """Return whether a `dtype` that the user gave lets whole numbers of text be rounded."""
    return str(dtype).startswith(("float", "complex"))


def is_text(path: Path) -> bool:
    """Return whether a file is a text file, by its name."""
    return _suffix(path) in TEXTS


def summary(stored: Stored) -> str:
    """Return a description of the content of a text file."""
    shape = stored.array.shape
    found = counted(stored.array.size, "number")
    if len(shape) == 2:
        found = f"{counted(shape[0], 'row')} x {counted(shape[1], 'column')}"
    named = "a name" if len(stored.names) == 1 else "a line of names"
    return f"{found} below {named}" if stored.names else found


def _begins_as_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _read_member(path: Path, part: str, shown: str) -> np.ndarray[Any, Any]:
    """Read an array of an archive, by its name if there are several."""
    with zipfile.ZipFile(path) as archive:
        there = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if not there:
            raise ValueError("it holds no array")
        first = next(iter(there))
        if part not in there and (part or len(there) != 1):
            hint = f", and no {part!r}" if part else f"; name one, as {shown}:{visible(first)}"
            raise ValueError(f"it holds the arrays {listed(there)}{hint}")
        name = f"{shown}:{part}" if part else shown
        member = archive.getinfo(there[part or first])
        with archive.open(member) as file:
            return _read_elements(file, read_header(file, member.file_size, name), name)


def _read_elements(file: IO[bytes], header: Header, name: str) -> np.ndarray[Any, Any]:
    """Read the elements after a header; no more memory is taken than they need."""
    check_numbers(header.dtype, name)
    flat = np.empty(math.prod(header.shape), header.dtype)
    left = memoryview(flat.view(np.uint8).data)
    while left:
        block = file.read(min(len(left), BLOCK))
        if not block:
            raise ValueError("it became shorter while it was read")
        left[: len(block)] = block
        left = left[len(block) :]
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def _undecodable(path: Path) -> str:
    """Return why a file is no text."""
    head = path.read_bytes()[:6]
    for beginning, packer in PACKED.items():
        if head.startswith(beginning):
            return f"it is compressed by {packer}; unpack it first"
    return "it is not UTF-8; save it as UTF-8"


def check_output(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Check early that `write_array` knows the format of `path`, and could write there."""
    _check_format(path, "write", tuple(item for item in formats if item not in SOUNDS))
    check_target(path, 0)  # its size is checked by `check_array`


def check_array(
    path: Path,
    array: np.ndarray[Any, Any],
    columns: Columns | None = None,
    *,
    like: np.ndarray[Any, Any] | None = None,
    parts: Mapping[str, np.ndarray[Any, Any]] = NOTHING,
) -> None:
    """Check early that `write_array` can write arrays of these shapes and types to `path`.

    InvalidProblem is raised if the format cannot hold them, or the disk has no room.
    """
    suffix = _suffix(path)
    check_target(path, sum(_least_bytes(suffix, item) for item in parts.values() or (array,)))
    try:
        if suffix in PICTURES:
            check_picture(array, like)
        if suffix in TIFFS:
            check_tiff(array)
        # Columns are computed only if needed, since that takes time.
        matters = suffix in TEXTS and (bool(parts) or array.ndim > 2)
        in_columns = matters and columns is not None and columns() is not None
        if parts and suffix != ".npz" and not in_columns:
            others = ".npz or .csv" if array.ndim <= 2 else ".npz"
            raise ValueError(
                f"it would hold one array, and the result is {' and '.join(parts)}; take {others}"
            )
        if suffix in TEXTS and not in_columns:
            check_text(array)
    except ValueError as error:
        raise InvalidProblem(f"cannot write {path}: {error}") from error


def _least_bytes(suffix: str, array: np.ndarray[Any, Any]) -> int:
    """Return the least size in bytes of a file with an array; a poor bound for images."""
    if suffix in TEXTS:
        return 2 * array.size  # a digit and a separator each
    return 0 if suffix in PICTURES else array.nbytes


def write_array(
    path: Path,
    array: np.ndarray[Any, Any],
    columns: Columns | None = None,
    *,
    like: np.ndarray[Any, Any] | None = None,
    names: Sequence[str] = (),
    parts: Mapping[str, np.ndarray[Any, Any]] = NOTHING,
) -> None:
    """Write an array atomically, in the format given by the name of `path`.

    A text file contains the result of `columns` instead of the array, or begins with `names`, one
    for each column. `like` is the image that a picture was made from, see `write_picture`. `parts`
    are all arrays of a result by name, if there are several: members of an ``.npz`` file, or
    columns of a text file if `columns` has them. InvalidProblem is raised if it cannot be written.
    """
    _check_format(path, "write", (*FORMATS, *PICTURES, *TIFFS))
    check_array(path, array, columns, like=like, parts=parts)
    suffix = _suffix(path)
    try:
        with write_target(path) as temporary:
            if suffix in PICTURES:
                write_picture(temporary, suffix, array, like)
            elif suffix in TIFFS:
                write_tiff(temporary, array)
            elif suffix == ".npy":
                np.save(temporary, array, allow_pickle=False)
            elif suffix == ".npz":
                members: dict[str, Any] = dict(parts) or {"arr_0": array}
                np.savez(temporary, **members)
            elif columns is not None and (named := columns()) is not None:
                write_columns(temporary, named, TEXTS[suffix])
            else:
                write_text(temporary, array, TEXTS[suffix], names)
    except InvalidProblem:
        raise
    except ValueError as error:
        raise InvalidProblem(f"cannot write {path}: {error}") from error
