"""Headers of `.npy` files, which anyone may have written."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from opencl_lab.core.errors import InvalidProblem

VERSIONS = ((1, 0), (2, 0), (3, 0))


class Header(NamedTuple):
    """What a file says of its array, and where its elements begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def opened(path: Path, name: str = "") -> Iterator[tuple[IO[bytes], Header]]:
    """Open a file at its elements; errors are those of `read_header`."""
    name = name or str(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidProblem(f"cannot read {name}: {error.strerror or error}") from error
    with file:
        yield file, read_header(file, os.fstat(file.fileno()).st_size, name)


def read_header(file: IO[bytes], size: int, name: str) -> Header:
    """Read the header of a file of `size` bytes, which messages call `name`.

    Then the elements follow in `file`. InvalidProblem is raised if there are fewer of them than the
    shape needs, for Python objects, and for shapes that no array has.
    """
    npy = np.lib.format
    try:
        if not size:
            raise InvalidProblem(f"cannot read {name}: it is empty")
        magic = file.read(npy.MAGIC_LEN)
        if not magic.startswith(npy.MAGIC_PREFIX):
            raise InvalidProblem(f"cannot read {name}: it does not begin as .npy and .npz files do")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, on literals in the header
            first = VERSIONS.index((magic[-2], magic[-1])) == 0
            read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
            found = Header(*read(file), file.tell())
            if not found.dtype.hasobject:
                _make(found)
    except InvalidProblem:
        raise
    except OSError as error:
        raise InvalidProblem(f"cannot read {name}: {error.strerror or error}") from error
    except Exception as error:  # of Python's parser, tokenizer and literals, and of NumPy's types
        raise InvalidProblem(f"cannot read {name}: its header is damaged") from error
    if found.dtype.hasobject:
        raise InvalidProblem(f"cannot read {name}: it has Python objects, which are not loaded")
    missing = found.offset + found.nbytes - size
    if missing > 0:
        raise InvalidProblem(f"cannot read {name}: it is cut off: {missing} bytes are missing")
    return found


def _make(header: Header) -> None:
    """Raise what NumPy raises for a shape that no array has, without taking memory for it."""
    np.broadcast_to(np.empty((), np.uint8), header.shape)
    if 0 in header.shape:
        np.empty(header.shape, header.dtype)
